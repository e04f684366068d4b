"""The commands of ``geomix``, one module each: ``add`` declares options, ``run`` does the work.

These modules import nothing but the standard library at their top; what a command needs is
imported when it runs. All of them are thin: ``geomix.tablefile`` reads, the model answers.

    parser, options, config                        arguments, shared options, settings from a file
    speaking, failures                             what is printed, and errors with exit codes
    fit over training, streaming, summary          fit a model, in memory or out of core
    predict over answering                         probabilities and labels for a file
    evaluate over figures                          quality on labelled rows
    explain, rules, counterfactual, drift, report  questions about a model, over asking
    info, verify, export                           model files, and other formats
    bench, demo, completion                        benchmarks, a first look, shell completion
"""
