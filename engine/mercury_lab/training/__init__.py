"""Make the bundled model from pretrained weights and a corpus: corpus, base, reader, train, export."""
