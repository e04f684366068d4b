"""
First
=====

A test page.
"""

import matplotlib.pyplot as plt

plt.plot([1, 2])
print("x")
