"""
A layer in torch
================

The last layer of a network decides. If it is a soft union of planes, it can be read: which plane
of a class is responsible, and what each feature contributes. This tutorial trains a small network
on handwritten digits.
"""

# %%
# The network
# -----------
# Two ordinary layers learn 16 features. The head has two planes for each digit.

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from geomix.torch import GeometricMixtureHead

torch.manual_seed(0)
X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
rows, target = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)

body = torch.nn.Sequential(
    torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU()
)
head = GeometricMixtureHead(16, n_classes=10, n_planes=2, sharpness=6.0, sharpness_start=3.0)

# %%
# Training
# --------
# Cross-entropy, plus the usage-aware penalty of the head. The sharpness rises during the first
# half.

N_EPOCHS = 30
optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-2)
for epoch in range(N_EPOCHS):
    head.anneal(epoch / (N_EPOCHS / 2))
    for batch in torch.randperm(len(rows)).split(64):
        features = body(rows[batch])
        loss = torch.nn.functional.cross_entropy(
            head(features), target[batch], label_smoothing=0.02
        )
        loss = loss + head.penalty(head.usage(features))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

# %%
# The head as a model
# -------------------
# ``to_model`` gives an ordinary ``GeometricMixture`` over the features. It explains, saves and
# exports as any other.

with torch.no_grad():
    features = body(torch.tensor(X_test / 16, dtype=torch.float32)).double().numpy()
model = head.to_model(columns=[f"feature {j}" for j in range(16)])
print(f"test accuracy {(model.predict(features) == y_test).mean():.3f}")

# %%
# Which plane is responsible?
# ---------------------------

from geomix.plots import UsageDisplay

UsageDisplay.from_model(model, features, y_test).plot()

# %%
print(model.explain_local(features[:1])[0])
