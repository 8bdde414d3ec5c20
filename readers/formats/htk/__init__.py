"""Speech: HTK feature files and archives, MLF labels, the readers and deserializers of the two, the writer."""
