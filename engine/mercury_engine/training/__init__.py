"""From pretrained weights and a corpus to a bundled model: base, corpus, train, export."""
