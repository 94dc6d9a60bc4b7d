"""Parts of controllers: link states, next hops, routes and table entries. This package knows no application."""
