"""A library that is linked but whose headers stay hidden.

A source depends on every header that the libraries below it show, read or not, so that a change of one that few
read would compile everything above again.
"""

def _linked_only_impl(ctx):
    return [CcInfo(linking_context = ctx.attr.library[CcInfo].linking_context)]

linked_only = rule(
    implementation = _linked_only_impl,
    attrs = {"library": attr.label(mandatory = True, providers = [CcInfo])},
)
