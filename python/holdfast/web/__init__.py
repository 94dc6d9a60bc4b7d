"""The pages for browsers: ``run --web``, ``switch --web`` and ``compare --web``. See the README beside this file.

Only these import it, and only :mod:`holdfast.web.page` and what is drawn with it import the framework, which comes with the extra
``holdfast[web]``.
"""
