"""Training one candidate: from labelled rows and settings to trained planes.

settings, recipe     every parameter of a fit, and the public part that few people change;
                     parameter_checks has what each may be
labelled_rows        X, y and weights at the door of ``fit``; data_checks warns about them
rows                 training rows: repeats merged, canonical order, splits and folds
class_order          the order of the classes in training, whatever their labels
preparation          rows standardised and clustered once for all candidates
features             working features of rows under one lift
plane_counts         how many planes a class gets; initial_planes where they start
one_cluster          the silhouettes that one Gaussian reaches, to compare with
adaptive_penalty     the importance of columns and steps, and a penalty that follows it
learnt_lift          frequencies of a Fourier lift, learnt with its planes
many_classes         training on very many classes is cut short
many_rows            several planes on very many rows: batches between L-BFGS and L-BFGS
monotone             constraints on the weights that make probabilities monotone
loop                 the solver's loop: lbfgs_stages or adam_epochs, with schedules
run, history         what a run records, and when it has to stop
state                what a warm start or partial_fit continues from
progress, callbacks  what a person or scikit-learn's callbacks see of a run
deadline             the time that is left
random_streams       one random generator for each named step
    step_knots             knots beside values at which the classes change at once
    interactions           which pairs of columns interact
    spare_planes           idle planes and copies, removed
    straight_lines         the plane of a linear model, as curves
    calm_curves            curves without small changes of direction
    choice                 the choice of a fit as a table
"""
