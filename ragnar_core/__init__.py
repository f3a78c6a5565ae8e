"""Read documents, chunk, embed, store, index and retrieve; ragnar's pipeline in Python."""
