"""Learning from rows of which few have a label.

classifier   ``SemiSupervisedClassifier``, a scikit-learn meta-estimator
labels       which rows have a label
neighbours   a graph of nearest rows, and labels that spread along it
stacking     soft labels from several sources, combined by their log-loss on labelled rows
soft_labels  the sources, their out-of-fold probabilities, and the choice whether to use them
"""
