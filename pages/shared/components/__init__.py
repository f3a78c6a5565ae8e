"""Streamlit components of our own: one Python file each over a .js and a .css beside it."""
