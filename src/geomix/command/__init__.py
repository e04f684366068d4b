"""The commands of ``geomix``, one module each: ``add`` declares the options, ``run`` does the work.

These modules import nothing but the standard library at the top; what a command needs is imported
when it runs. They only connect parts: ``geomix.tablefile`` reads the rows, the model predicts.

    parser, options, config                        arguments, shared options, settings from a file
    messages, exit_codes                           notes and warnings; errors and their exit codes
    fit over fit_in_memory, fit_streaming, summary train a model, in memory or out of core
    predict over predictions                       predicted labels and probabilities for a file
    evaluate over metrics                          accuracy, log-loss and others on labelled rows
    explain, rules, counterfactual, drift, report  explain a model; inputs loads model and rows,
                                                   of large files an even row_sample
    info, verify, export                           model files, and other formats
    bench, demo, completion                        benchmarks, a demonstration, shell completion
"""
