"""The command that serves a draft: written for a target, and read where a user has one already.

``statements`` holds ``rules/launch`` · ``line`` writes a command, ``serving`` for a draft and its
targets, ``render`` as text · ``shell`` splits a text into commands · ``parse`` finds the server's
among them · ``options`` says what its arguments mean to a release.
"""
