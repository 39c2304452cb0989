"""Checkouts: the files of one commit, written by us, for the agent to read.

``adapter`` (the port) → ``slots`` (which trees are kept, and who uses them) → ``download`` (the
pack, over HTTP) → ``unpacking`` (starts the child) → ``child`` (a process of its own, which asks
git what is in the pack and writes the files).

Invariant: git never gets the token, never speaks to the network, and never writes a file of the
tree; no setting, attribute, filter or hook has a say in what is written.

Invariant: a tree holds regular files and folders that we made, under names that ``names`` let pass.

Invariant: a tree that has its name is whole; it is made beside and renamed.

Invariant: ``bounds``, ``child``, ``listing``, ``names``, ``objects`` and ``writing`` import the
standard library alone, and so does this file: the child starts in 30 ms.
"""
