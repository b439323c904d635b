// SPDX-License-Identifier: Apache-2.0
// The bytes of the embedded model, of its encoders and of its drafter, in the program's read-only
// data (embedded_model.h).
#ifdef __APPLE__
  .const
#else
  .section .rodata
#endif
.macro embed name, file
  .global \name\()_begin
  .global \name\()_end
  .balign 64
\name\()_begin:
  .incbin "\file"
\name\()_end:
  .byte 0
.endm
embed facet_embedded_model, FACET_EMBEDDED_MODEL
embed facet_embedded_projector, FACET_EMBEDDED_PROJECTOR
embed facet_embedded_drafter, FACET_EMBEDDED_DRAFTER
#ifdef __ELF__
  .section .note.GNU-stack, "", %progbits
#endif
