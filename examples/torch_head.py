"""A small network on the digits whose last layer is a soft union of planes.

The network learns features, the head learns two planes for each digit over them; afterwards
the head is an ordinary model, and says which plane of a digit answers for which images.

    python examples/torch_head.py
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from geomix.explain.diagnostics import plane_usage
from geomix.torch import GeometricMixtureHead

N_EPOCHS, BATCH = 40, 64


def main() -> None:
    torch.manual_seed(0)
    X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    x, target = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    body = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU()
    )
    head = GeometricMixtureHead(16, n_classes=10, n_planes=2, sharpness=6.0, sharpness_start=3.0)
    network = torch.nn.Sequential(body, head)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for epoch in range(N_EPOCHS):
        head.anneal(epoch / (N_EPOCHS / 2))
        for rows in torch.randperm(len(x)).split(BATCH):
            features = body(x[rows])
            loss = torch.nn.functional.cross_entropy(
                head(features), target[rows], label_smoothing=0.02
            )
            loss = loss + head.penalty(head.usage(features))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        features = body(torch.tensor(X_test / 16, dtype=torch.float32)).double().numpy()
    model = head.to_model(columns=[f"feature {j}" for j in range(16)])
    accuracy = (model.predict(features) == y_test).mean()
    print(f"test accuracy {accuracy:.3f}")
    print("share of each digit's images that its two planes answer for:")
    shares = plane_usage(model, features, y_test).reshape(10, 2)
    for digit, (first, second) in enumerate(shares):
        print(f"  {digit}: {first:.2f} and {second:.2f}")
    answer = model.scorer().explain(features[0])
    print(f"the first test image is a {answer.label}: plane {answer.plane} of it answers")


if __name__ == "__main__":
    main()
