// SPDX-License-Identifier: Apache-2.0
// The bytes of the embedded model, in the program's read-only data (embedded_model.h).
#ifdef __APPLE__
  .const
#else
  .section .rodata
#endif
  .global facet_embedded_model_begin
  .global facet_embedded_model_end
  .balign 64
facet_embedded_model_begin:
  .incbin FACET_EMBEDDED_MODEL
facet_embedded_model_end:
  .byte 0
#ifdef __ELF__
  .section .note.GNU-stack, "", %progbits
#endif
