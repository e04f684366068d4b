"""Fits on rows that are not all in memory: files, clusters and devices.

survey over sampling            one pass: means, scales, levels, classes and a sample
held_out                        rows of the sample that set the temperature
part_reader                     raw rows as working features, one part at a time
fit                             survey, choose on the sample, train on sums over all rows
scratch                         rows on a scratch file, read block by block in every pass
files                           ``fit_files``: Parquet, Feather and text files
parquet_source                  rows of Parquet and Feather files, with the types that they store
table_source                    rows of any table file, read as the command line reads them
placement                       partitions spread evenly over the workers of a cluster
devices                         arrays on a device: torch, CuPy, JAX
"""
