"""In a Pipeline, with cross-validation and a grid search."""

from sklearn.datasets import load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from geomix import GeometricMixtureClassifier

X, y = load_wine(return_X_y=True)
clf = GeometricMixtureClassifier(n_planes=1, lift="linear", l2=1e-2, random_state=0)

pipeline = make_pipeline(SelectKBest(k=8), clf)
print("accuracy of three folds:", cross_val_score(pipeline, X, y, cv=3).round(3))

search = GridSearchCV(clf, {"n_planes": [1, 2]}, scoring="neg_log_loss", cv=3).fit(X, y)
print("best:", search.best_params_)
