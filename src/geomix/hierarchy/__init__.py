"""Classes that form a tree, such as species in genera.

tree         ``ClassTree``: the groups of a nested dict, and distances between classes
classifier   ``HierarchicalClassifier``, a scikit-learn meta-estimator
"""
