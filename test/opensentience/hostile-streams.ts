// Named hostile byte streams of the OpenSentience wire (seed 004 §2): each is one thing that no agent may do to others.
import { MAX_FRAME_DEPTH, type FrameFault } from '../../src/opensentience/frame.ts';

/** A body behind its length, whatever it is. */
export function framed(body: string | Uint8Array, length?: number): Buffer {
  const bytes = Buffer.from(body as string);
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32BE(length ?? bytes.length);
  return Buffer.concat([prefix, bytes]);
}

export interface BadFrame {
  readonly name: string;
  readonly bytes: Buffer;
  readonly fault: FrameFault;
}

const deep = (open: string, close: string, levels: number): string =>
  `{"a":${open.repeat(levels)}${close.repeat(levels)}}`;

/** The limit that these are made for is 64 KiB. */
export const BAD_FRAMES: readonly BadFrame[] = [
  { name: 'a length of 4 GiB', bytes: Buffer.from([0xff, 0xff, 0xff, 0xff]), fault: 'too-large' },
  {
    name: 'a length of one above the limit',
    bytes: framed('{}', 64 * 1024 + 1),
    fault: 'too-large',
  },
  {
    name: 'text of another protocol',
    bytes: Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    fault: 'too-large',
  },
  { name: 'a length of zero', bytes: framed(''), fault: 'empty' },
  {
    name: 'a byte that is never UTF-8',
    bytes: framed(Buffer.from([0x7b, 0xff, 0x7d])),
    fault: 'not-utf8',
  },
  {
    name: 'an overlong slash',
    bytes: framed(Buffer.from([0x22, 0xc0, 0xaf, 0x22])),
    fault: 'not-utf8',
  },
  {
    name: 'a surrogate in UTF-8',
    bytes: framed(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])),
    fault: 'not-utf8',
  },
  { name: 'a cut character', bytes: framed(Buffer.from([0x22, 0xf0, 0x9f])), fault: 'not-utf8' },
  {
    name: 'a byte order mark',
    bytes: framed(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d])),
    fault: 'not-json',
  },
  { name: 'no JSON', bytes: framed('hello'), fault: 'not-json' },
  { name: 'cut JSON', bytes: framed('{"v":1'), fault: 'not-json' },
  { name: 'two objects in one frame', bytes: framed('{}{}'), fault: 'not-json' },
  { name: 'a control character in a string', bytes: framed('{"a":"\n"}'), fault: 'not-json' },
  { name: 'NaN', bytes: framed('{"a":NaN}'), fault: 'not-json' },
  { name: 'white space alone', bytes: framed('   '), fault: 'not-json' },
  { name: 'an array', bytes: framed('[{}]'), fault: 'not-object' },
  { name: 'a string', bytes: framed('"x"'), fault: 'not-object' },
  { name: 'null', bytes: framed('null'), fault: 'not-object' },
  { name: 'a number', bytes: framed('1'), fault: 'not-object' },
  {
    name: 'arrays one level too deep',
    bytes: framed(deep('[', ']', MAX_FRAME_DEPTH)),
    fault: 'too-deep',
  },
  { name: 'thirty thousand levels', bytes: framed(deep('[', ']', 30_000)), fault: 'too-deep' },
  {
    name: 'objects too deep',
    bytes: framed(deep('{"a":', '}', 100).replace('}', '1}')),
    fault: 'too-deep',
  },
  { name: 'an end within the length', bytes: Buffer.from([0, 0]), fault: 'truncated' },
  { name: 'an end within the body', bytes: framed('{"v":1', 40), fault: 'truncated' },
  { name: 'an end before the body', bytes: Buffer.from([0, 0, 1, 0]), fault: 'truncated' },
];
