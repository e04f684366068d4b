"""Classes that form a tree, such as species in genera.

tree              ``ClassTree``: the groups of a nested dict, and distances between classes
class_parameters  parameters that name classes, for models whose labels are others
classifier        ``HierarchicalClassifier``, a scikit-learn meta-estimator
"""
