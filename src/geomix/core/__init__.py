"""The formula and the fast code: features, planes, pooling, loss, solvers, predictions.

pooling, planes, objective    the four equations and the training objective
feature_map                   from encoded rows to phi: one-hot columns, standardising, a lift
moments                       mean, variance and limits of columns, in memory or in parts
lifts                         standardise, rotate, lift: linear and Fourier features
spline over spline_parts      the spline lift: a curve for each column, tables for pairs
curve_sums                    sums over rows of phi, for all curves of a lift at once
joined_splines                planes over several spline lifts, as planes over one
row_span                      a small basis of the features of training rows
row_sums                      loss, gradient and usage of rows, as sums
adam, lbfgs, descent          solvers on one flat array; bounded_lbfgs: SciPy's, with bounds
step_memory                   the last steps of L-BFGS, and the direction that they give
ordered_weights               planes whose weights keep an order, as numbers with bounds
pair_gains                    what a table over each pair of columns would add
clustering                    weighted k-means and silhouettes
calm                          a curve without small changes of direction
calibration                   the temperature, and measures of calibration
predictors                    predictions for whole tables and for one row
kernel over native            the one door to compiled code, with NumPy as the reference
array_api                     the same functions for torch, CuPy and JAX arrays
blas_threads                  BLAS threads during a fit
"""
