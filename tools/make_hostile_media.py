#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile and odd files of pictures, sound and video, made of the samples in testdata/media: every run writes the same.

Usage: tools/make_hostile_media.py FOLDER [TESTDATA_MEDIA]

Writes at least 300 files into FOLDER, and list.json: [{"file", "kind": "image"|"audio"|"video", "may_decode"}]. Each must
give what it holds or one error, soon and in little memory; those with "may_decode": false must give the error. Standard
library only.
"""
import json
import os
import random
import struct
import sys
import zlib

IMAGES = ["rgb.png", "interlaced.png", "palette_transparent.png", "gray16.png", "baseline_420.jpg", "progressive_420.jpg",
          "cmyk.jpg", "exif_orientation_6.jpg", "lossy.webp", "lossless_alpha.webp", "animated.gif", "rgb.bmp"]
AUDIO = ["s16_16k_mono.wav", "s24_44k_stereo_extensible.wav", "f32_48k_mono.wav", "s16_22k_mono.flac",
         "vorbis_44k_stereo.ogg", "opus_48k_mono.opus", "cbr96_44k_stereo.mp3", "aac_44k_stereo.m4a"]
VIDEO = ["clip.mp4", "clip.webm", "clip.gif", "short_20_frames.mp4"]


class Folder:
    """What is written, and the list of it."""

    def __init__(self, path):
        self.path = path
        self.rows = []
        os.makedirs(path, exist_ok=True)

    def add(self, kind, name, data, may_decode=True):
        file = f"{kind}_{len(self.rows):03d}_{name}"
        with open(os.path.join(self.path, file), "wb") as out:
            out.write(data)
        self.rows.append({"file": file, "kind": kind, "may_decode": may_decode})

    def close(self):
        with open(os.path.join(self.path, "list.json"), "w", encoding="utf-8") as out:
            out.write("[\n" + ",\n".join(" " + json.dumps(row) for row in self.rows) + "\n]\n")


# --- damage that fits any file ----------------------------------------------------------------------------------------

def add_damaged(folder, kind, name, data):
    """Cuts, flipped bytes, filled headers. A stream may well lose its end and still be played."""
    stem, ending = os.path.splitext(name)
    size = len(data)
    for cut in (1, 7, 11):
        folder.add(kind, f"{stem}_cut_at_{cut}{ending}", data[:cut], False)
    for share in (8, 2):
        folder.add(kind, f"{stem}_cut_to_1_in_{share}{ending}", data[:size // share])
    folder.add(kind, f"{stem}_cut_by_1{ending}", data[:-1])
    for seed in range(3):
        drawn = random.Random(f"{name} {seed}")
        flipped = bytearray(data)
        for _ in range(1 + size // 500):
            flipped[drawn.randrange(size)] ^= drawn.randrange(1, 256)
        folder.add(kind, f"{stem}_flipped_{seed}{ending}", bytes(flipped))
    for at in (12, 28):
        folder.add(kind, f"{stem}_ones_at_{at}{ending}", data[:at] + b"\xff" * 16 + data[at + 16:])
        folder.add(kind, f"{stem}_zeros_at_{at}{ending}", data[:at] + b"\0" * 16 + data[at + 16:])


def add_not_media(folder):
    """Files of no such kind, under names that promise one."""
    texts = {"nothing": b"", "zero": b"\0", "zeros": b"\0" * 4096, "newline": b"\n", "text": b"Only a line of text.\n",
             "html": b"<!DOCTYPE html><html><body>404 Not Found</body></html>", "json": b'{"error": "no such file"}',
             "svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9999999" height="9999999"/>',
             "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "zip": b"PK\3\4" + b"\0" * 60, "elf": b"\x7fELF\2\1\1" + b"\0" * 60,
             "ones": b"\xff" * 4096, "utf16": "text".encode("utf-16"), "tiff": b"II*\0\x08\0\0\0\xff\xff",
             "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "playlist": b"#EXTM3U\n#EXTINF:10,\nfile:///etc/hostname\n",
             "list": b"ffconcat version 1.0\nfile /etc/hostname\n"}
    endings = {"image": ".png", "audio": ".wav", "video": ".mp4"}
    for kind, ending in endings.items():
        for name, data in texts.items():
            folder.add(kind, name + ending, data, False)


# --- pictures ---------------------------------------------------------------------------------------------------------

def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth=8, colour=2, rows=b"", before=b"", interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + before + png_chunk(b"IDAT", zlib.compress(rows, 9))
            + png_chunk(b"IEND", b""))


def add_png(folder):
    pixel = b"\0\1\2\3"
    for width, height in ((0, 1), (1, 0), (0, 0), (0x7fffffff, 0x7fffffff), (0xffffffff, 1), (1, 0x80000000),
                          (100001, 1000), (65535, 65535), (1000001, 1)):
        folder.add("image", f"sides_{width}_{height}.png", png(width, height, rows=pixel), False)
    folder.add("image", "tiny_payload.png", png(9000, 9000, rows=pixel), False)
    folder.add("image", "interlaced_bomb.png", png(9000, 9000, rows=b"\0" * 100, interlaced=1), False)
    folder.add("image", "more_data_than_pixels.png", png(1, 1, rows=pixel + b"\0" * 50_000_000))
    for depth, colour in ((3, 2), (16, 3), (8, 1), (8, 7), (0, 0), (255, 255)):
        folder.add("image", f"depth_{depth}_colour_{colour}.png", png(1, 1, depth, colour, pixel), False)
    folder.add("image", "palette_missing.png", png(1, 1, 8, 3, b"\0\5"), False)
    packed = zlib.compress(b"x" * 60_000_000, 9)
    folder.add("image", "text_bomb.png", png(1, 1, rows=pixel, before=png_chunk(b"zTXt", b"k\0\0" + packed)))
    folder.add("image", "profile_bomb.png", png(1, 1, rows=pixel, before=png_chunk(b"iCCP", b"k\0\0" + packed)))
    folder.add("image", "huge_text.png", png(1, 1, rows=pixel, before=png_chunk(b"tEXt", b"k\0" + b"x" * 3_000_000)))
    folder.add("image", "many_chunks.png", png(1, 1, rows=pixel, before=png_chunk(b"tEXt", b"k\0x") * 50_000))
    long_chunk = struct.pack(">I", 0xffffffff) + b"tEXt" + b"x" * 100
    folder.add("image", "chunk_of_4_gib.png", png(1, 1, rows=pixel, before=long_chunk), False)
    exif = b"MM\0*\0\0\0\x08\xff\xff" + b"\x01\x0f\0\2\xff\xff\xff\xff\xff\xff\xff\xff" * 20
    folder.add("image", "exif_lies.png", png(1, 1, rows=pixel, before=png_chunk(b"eXIf", exif)))
    folder.add("image", "two_headers.png", png(1, 1, rows=pixel, before=png_chunk(b"IHDR", b"\0" * 13)))


def add_jpeg(folder, baseline, progressive):
    frame = baseline.index(b"\xff\xc0")
    for height, width in ((0, 0), (0, 100), (65500, 65500), (61440, 61440), (65535, 65535)):
        sides = struct.pack(">HH", height, width)
        folder.add("image", f"sides_{width}_{height}.jpg", baseline[:frame + 5] + sides + baseline[frame + 9:], False)
    folder.add("image", "two_colours.jpg", baseline[:frame + 9] + b"\2" + baseline[frame + 10:], False)
    folder.add("image", "12_bits.jpg", baseline[:frame + 4] + b"\x0c" + baseline[frame + 5:], False)
    scan = progressive.index(b"\xff\xda")
    behind = progressive.index(b"\xff\xc4", scan)
    folder.add("image", "scan_bomb.jpg", progressive[:behind] + progressive[scan:behind] * 500 + progressive[behind:],
               False)
    for name, directory in (("loop", b"\0\1\1\x0f\0\4\0\0\0\1\0\0\0\x08\0\0\0\x08"), ("outside", b"\xff\xff"),
                            ("orientation_9", b"\0\1\1\x12\0\3\0\0\0\1\0\x09\0\0\0\0\0\x08")):
        block = b"Exif\0\0MM\0*\0\0\0\x08" + directory
        marker = b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block
        folder.add("image", f"exif_{name}.jpg", baseline[:2] + marker + baseline[2:])
    folder.add("image", "many_markers.jpg", baseline[:2] + b"\xff\xe1\0\x06Exif" * 100_000 + baseline[2:])
    folder.add("image", "marker_without_end.jpg", baseline[:2] + b"\xff\xe1\xff\xff" + baseline[2:], False)
    folder.add("image", "only_markers.jpg", b"\xff\xd8\xff\xd9", False)


def gif(width, height, left, top, frame_width, frame_height, codes):
    return (b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff,"
            + struct.pack("<HHHHB", left, top, frame_width, frame_height, 0) + b"\2" + codes + b"\0;")


def add_gif(folder):
    codes = b"\2\x44\1"
    for sides in ((65535, 65535, 0, 0, 1, 1), (1, 1, 65535, 65535, 65535, 65535), (1, 1, 0, 0, 0, 0),
                  (0, 0, 0, 0, 0, 0), (1, 1, 0, 0, 65535, 65535), (20000, 20000, 0, 0, 1, 1)):
        folder.add("image", "sides_" + "_".join(map(str, sides)) + ".gif", gif(*sides, codes), False)
    one = gif(1, 1, 0, 0, 1, 1, codes)
    frame = one[one.index(b","):-1]
    folder.add("image", "million_frames.gif", one[:-1] + frame * 1_000_000 + b";")
    folder.add("image", "many_extensions.gif", one[:19] + b"\x21\xfe\1x\0" * 500_000 + one[19:])
    folder.add("image", "no_frame.gif", one[:19] + b";", False)
    folder.add("image", "code_size_200.gif", one.replace(b"\2" + codes, b"\xc8" + codes), False)
    folder.add("image", "no_code.gif", gif(1, 1, 0, 0, 1, 1, b""), False)


def bmp(width, height, bits=24, compression=0, n_colours=0, at=54, header=40):
    return (b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, at, header, width, height, 1, bits, compression, 0, 0, 0,
                                n_colours, 0) + bytes(range(64)))


def add_bmp(folder):
    for width, height in ((0, 1), (1, 0), (-1, 1), (-4, -4), (2147483647, 2147483647), (1, -2147483648), (30000, 30000),
                          (9000, 9000)):
        folder.add("image", f"sides_{width}_{height}.bmp", bmp(width, height), False)
    for bits, compression in ((0, 0), (2, 0), (7, 0), (24, 1), (8, 2), (24, 4), (24, 5), (64, 0), (65535, 0)):
        folder.add("image", f"bits_{bits}_compression_{compression}.bmp", bmp(1, 1, bits, compression), False)
    folder.add("image", "runs_that_end_at_once.bmp", bmp(9000, 9000, 8, 1))
    folder.add("image", "palette_of_4_gib.bmp", bmp(1, 1, 8, 0, 0xffffffff))
    folder.add("image", "pixels_outside.bmp", bmp(1, 1, at=0xffffffff), False)
    folder.add("image", "header_of_4_gib.bmp", bmp(1, 1, header=0xffffffff), False)
    folder.add("image", "masks_with_holes.bmp", bmp(1, 1, 32, 3)[:54] + b"\xf0\xf0\xf0\xf0" * 8, False)


def add_webp(folder, lossless):
    folder.add("image", "riff_of_4_gib.webp", lossless[:4] + b"\xff\xff\xff\xff" + lossless[8:], False)
    folder.add("image", "riff_of_nothing.webp", lossless[:4] + b"\0\0\0\0" + lossless[8:], False)
    canvas = b"VP8X" + struct.pack("<II", 10, 0) + b"\xff" * 6
    folder.add("image", "canvas_of_16_million.webp", b"RIFF" + struct.pack("<I", 22) + b"WEBP" + canvas, False)
    folder.add("image", "no_chunk.webp", b"RIFF\4\0\0\0WEBP", False)


# --- sound ------------------------------------------------------------------------------------------------------------

def wav(code=1, channels=1, rate=16000, bits=16, data=b"\0\1" * 4000, data_size=None, riff_size=None):
    block = channels * bits // 8 & 0xffff
    form = struct.pack("<HHIIHH", code, channels, rate, rate * block & 0xffffffff, block, bits)
    size = len(data) if data_size is None else data_size
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(body) if riff_size is None else riff_size) + body


def add_wav(folder):
    add = lambda name, data, may_decode=True: folder.add("audio", name + ".wav", data, may_decode)
    add("data_of_4_gib", wav(data_size=0xffffffff))
    add("data_and_riff_of_4_gib", wav(data_size=0xffffffff, riff_size=0xffffffff))
    add("riff_of_nothing", wav(riff_size=0))
    add("no_samples", wav(data=b""), False)
    add("one_sample", wav(data=b"\0\1"), False)
    add("odd_byte", wav(data=b"\0\1" * 4000 + b"\1"))
    add("0_channels", wav(channels=0), False)
    add("0_hz", wav(rate=0), False)
    add("1_hz", wav(rate=1))
    add("4_ghz", wav(rate=0xffffffff))
    add("0_bits", wav(bits=0), False)
    add("65535_bits", wav(bits=65535), False)
    add("65535_channels", wav(channels=65535), False)
    add("1024_channels", wav(channels=1024))
    for code in (0, 0x50, 0x92, 0x2000, 0xdead):
        add(f"codec_{code:04x}", wav(code=code), False)
    add("adpcm_without_blocks", wav(code=2, bits=4))
    add("nan", wav(code=3, bits=32, data=b"\0\0\xc0\x7f" * 4000))
    add("infinite", wav(code=3, bits=32, data=b"\0\0\x80\x7f" * 4000))
    whole = wav()
    add("no_data_chunk", whole[:36], False)
    add("no_format_chunk", whole[:12] + whole[36:], False)
    add("many_chunks", whole[:12] + b"junk\0\0\0\0" * 100_000 + whole[12:])
    add("chunk_of_4_gib", whole[:12] + b"junk\xff\xff\xff\xff" + whole[12:], False)


def add_streams(folder, read):
    flac = read("audio/files/s16_22k_mono.flac")
    folder.add("audio", "only_header.flac", flac[:42], False)
    folder.add("audio", "2_to_36_samples.flac", flac[:21] + b"\xff" * 5 + flac[26:])
    folder.add("audio", "0_hz.flac", flac[:18] + b"\0\0\x02" + flac[21:])
    ogg = read("audio/files/vorbis_44k_stereo.ogg")
    folder.add("audio", "only_a_page.ogg", ogg[:58], False)
    folder.add("audio", "pages_without_sound.ogg", ogg[:27] * 1000, False)
    folder.add("audio", "last_page_far_away.ogg", ogg + b"OggS\0\4" + b"\x7f" * 8 + ogg[14:27] + b"\0")
    mp3 = read("audio/files/cbr32_16k_mono.mp3")
    folder.add("audio", "only_a_header.mp3", b"\xff\xfb\x90\x64", False)
    folder.add("audio", "tag_of_256_mib.mp3", b"ID3\4\0\0\x7f\x7f\x7f\x7f" + mp3)
    folder.add("audio", "headers_only.mp3", b"\xff\xfb\x90\x64" * 1000)


# --- names that lie, and video ----------------------------------------------------------------------------------------

def add_wrong_names(folder, read):
    png_file = read("images/source/rgb.png")
    sound = read("audio/files/s16_16k_mono.wav")
    film = read("video/clip.mp4")
    folder.add("image", "png_named_jpg.jpg", png_file)
    folder.add("image", "png_named_txt.txt", png_file)
    folder.add("image", "sound.png", sound, False)
    folder.add("image", "film.png", film, False)
    folder.add("audio", "wav_named_mp3.mp3", sound)
    folder.add("audio", "picture.wav", png_file, False)
    folder.add("video", "mp4_named_avi.avi", film)
    folder.add("video", "sound.mp4", sound, False)
    folder.add("video", "picture.mp4", png_file, False)
    for head in IMAGES[::3]:
        for rest in IMAGES[::4]:
            if head[:8] != rest[:8]:
                mixed = read(f"images/source/{head}")[:16] + read(f"images/source/{rest}")[16:]
                folder.add("image", f"{head}_before_{rest}", mixed)


def add_video(folder, read):
    film = read("video/clip.mp4")
    for box in (b"ftyp", b"moov", b"mdat", b"stsz", b"stco", b"stts", b"stsd", b"avcC", b"tkhd", b"mvhd"):
        at = film.find(box)
        if at >= 4:
            folder.add("video", f"{box.decode()}_of_4_gib.mp4", film[:at - 4] + b"\xff" * 4 + film[at:])
            folder.add("video", f"{box.decode()}_filled.mp4", film[:at + 8] + b"\xff" * 12 + film[at + 20:])
    folder.add("video", "boxes_in_boxes.mp4", film[:32] + b"".join(
        struct.pack(">I", 8 * (5000 - i)) + b"moov" for i in range(5000)), False)
    webm = read("video/clip.webm")
    folder.add("video", "segment_without_end.webm", webm[:40] + b"\xff" * 16 + webm[56:])
    folder.add("video", "only_header.webm", webm[:40], False)


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    media = arguments[1] if len(arguments) == 2 else os.path.join(here, "testdata", "media")

    def read(path):
        with open(os.path.join(media, path), "rb") as file:
            return file.read()

    folder = Folder(arguments[0])
    for kind, place, names in (("image", "images/source", IMAGES), ("audio", "audio/files", AUDIO), ("video", "video", VIDEO)):
        for name in names:
            add_damaged(folder, kind, name, read(f"{place}/{name}"))
    add_not_media(folder)
    add_png(folder)
    add_jpeg(folder, read("images/source/baseline_420.jpg"), read("images/source/progressive_420.jpg"))
    add_gif(folder)
    add_bmp(folder)
    add_webp(folder, read("images/source/lossless_alpha.webp"))
    add_wav(folder)
    add_streams(folder, read)
    add_wrong_names(folder, read)
    add_video(folder, read)
    folder.close()
    print(f"{len(folder.rows)} files in {folder.path}")


if __name__ == "__main__":
    main(sys.argv[1:])
