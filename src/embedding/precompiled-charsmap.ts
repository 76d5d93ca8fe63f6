import { TrawlError } from '../errors.ts';

/** Bytes of a grapheme from which on it is looked up character by character only. */
const LONG_GRAPHEME_BYTES = 6;
/** Code units looked at together: Intl.Segmenter takes time in the square of a text's length. */
const WINDOW = 128;

const JOINING = '\\p{M}\\p{Cf}\\p{Grapheme_Extend}\\p{Emoji_Modifier}\\u0E33\\u0EB3';
/** What joins the character behind it: prepended marks, and the joiner between emoji. */
const PREPENDED = '\\u0600-\\u0605\\u06DD\\u070F\\u0890\\u0891\\u08E2\\u0D4E\\u200D';
/** Where a grapheme may have more than one character. */
const CLUSTER = `\\r\\n|[^${JOINING}]?[${JOINING}]+(?:(?<=[${PREPENDED}])[^${JOINING}][${JOINING}]*)*`;

/** Parts whose replacement is remembered: more than a text has, few enough for a long run. */
const KNOWN_PARTS = 10_000;

const utf8 = new TextEncoder();

/**
 * The normaliser of sentencepiece models (XLM-R and its kin) from the `precompiled_charsmap` of a tokenizer.json, base64:
 * the bytes of a double-array trie (uint32 length, little-endian, then its units), then the normalised strings, each
 * ending in NUL. The library has an approximation by NFKC in its place.
 *
 * The rules are those of the reference (the Rust crate spm_precompiled), oddities included: a grapheme of fewer than six
 * bytes is replaced as a whole by what its *shortest* known beginning becomes, so that `e` with a mark that no entry
 * begins with keeps it, while a mark behind a full-width letter goes. Longer graphemes are replaced by characters. Only
 * where more than a hundred characters join, the borders of windows may part what the reference sees as one.
 */
export function precompiledNormalizer(base64: string): (text: string) => string {
  const lookUp = charsmapLookUp(Buffer.from(base64, 'base64'));
  const known = new Map<string, string | null>();
  const replacement = (part: string): string | null => {
    let result = known.get(part);
    if (result === undefined) {
      result = lookUp(utf8.encode(part));
      if (known.size === KNOWN_PARTS) known.clear();
      known.set(part, result);
    }
    return result;
  };
  const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' });
  const byCharacter = (text: string) => {
    let result = '';
    for (const character of text) result += replacement(character) ?? character;
    return result;
  };
  const byGrapheme = (text: string) => {
    let result = '';
    for (const { segment } of graphemes.segment(text)) {
      const isShort = Buffer.byteLength(segment) < LONG_GRAPHEME_BYTES;
      result += (isShort ? replacement(segment) : null) ?? byCharacter(segment);
    }
    return result;
  };
  const inWindows = (cluster: string) => {
    if (cluster.length === 1) return replacement(cluster) ?? cluster;
    if (cluster.length <= WINDOW) return byGrapheme(cluster);
    // Of characters, so that no pair of surrogates is parted.
    return [...cluster.matchAll(windows)].map(([window]) => byGrapheme(window)).join('');
  };
  const printable = Array.from({ length: 0x5f }, (_, i) => String.fromCharCode(0x20 + i));
  const leavesPrintable = printable.every((character) => lookUp(utf8.encode(character)) === null);
  const looked = new RegExp(`${CLUSTER}|${leavesPrintable ? '[^ -~]' : '\\p{Any}'}`, 'gu');
  return (text) => text.replace(looked, inWindows);
}

const windows = new RegExp(`\\p{Any}{1,${WINDOW / 2}}`, 'gu');

/** UTF-8 → what its shortest beginning in the table becomes, null where none is in it. */
function charsmapLookUp(blob: Buffer): (key: Uint8Array) => string | null {
  const trieBytes = blob.length < 4 ? -1 : blob.readUInt32LE(0);
  if (trieBytes < 4 || trieBytes % 4 !== 0 || 4 + trieBytes > blob.length) {
    throw new TrawlError('MODEL_INVALID', 'its precompiled_charsmap is not what sentencepiece writes');
  }
  const units = new Uint32Array(trieBytes / 4);
  for (let i = 0; i < units.length; i++) units[i] = blob.readUInt32LE(4 + 4 * i);
  const strings = blob.subarray(4 + trieBytes);

  return (key) => {
    let node = offset(units[0]!);
    for (const byte of key) {
      if (byte === 0) return null;
      node ^= byte;
      const unit = units[node] ?? 0;
      // The label of a unit, and the bit that marks a value.
      if ((unit & 0x800000ff) !== byte) return null;
      node ^= offset(unit);
      if ((unit & 0x100) !== 0) {
        const start = (units[node] ?? 0) & 0x7fffffff;
        const end = strings.indexOf(0, start);
        return strings.toString('utf8', start, end < 0 ? strings.length : end);
      }
    }
    return null;
  };
}

/** Of a unit of a Darts double array: from a node to where its children are. */
function offset(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
