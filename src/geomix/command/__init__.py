"""The commands of ``geomix``, one module each: ``add`` tells the parser, ``run`` does the work.

Modules here import nothing but the standard library at their top; what a command needs is imported
when it runs. All of them are thin: reading is ``geomix.tablefile``, answers are the model's.
"""
