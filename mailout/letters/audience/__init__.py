"""Who receives it: parse, normalise, validate, dedupe and sort, with a count for everything dropped."""
