// SPDX-License-Identifier: Apache-2.0
/* The bytes of models/tiny/chat_template.jinja, for ChatTemplate::BuiltIn(). */
    .section .rodata
    .global facet_builtin_template
    .global facet_builtin_template_size
    .balign 8
facet_builtin_template_size:
    .quad facet_builtin_template_end - facet_builtin_template
facet_builtin_template:
    .incbin "chat_template.jinja"
facet_builtin_template_end:
    .section .note.GNU-stack,"",%progbits
