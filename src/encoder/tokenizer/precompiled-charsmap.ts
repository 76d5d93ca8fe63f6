import { TrawlError } from '../../base/errors.ts';

/** Graphemes of this many bytes or more are looked up only by character. */
const LONG_GRAPHEME_BYTES = 6;
/** Longest text that is segmented at once, in code units: Intl.Segmenter takes quadratic time. */
const WINDOW = 128;

const JOINING = '\\p{M}\\p{Cf}\\p{Grapheme_Extend}\\p{Emoji_Modifier}\\u0E33\\u0EB3';
/** Characters that join the next one: prepended marks, and the joiner between emoji. */
const PREPENDED = '\\u0600-\\u0605\\u06DD\\u070F\\u0890\\u0891\\u08E2\\u0D4E\\u200D';
/** Text in which a grapheme may have more than one character. */
const CLUSTER = `\\r\\n|[^${JOINING}]?[${JOINING}]+(?:(?<=[${PREPENDED}])[^${JOINING}][${JOINING}]*)*`;

const MAX_CACHED = 10_000;

const utf8 = new TextEncoder();

/**
 * The normaliser of sentencepiece models (the XLM-R family) from the `precompiled_charsmap` of a tokenizer.json. It is base64 of a
 * double-array trie (uint32 length, little-endian, then its units) and the normalised strings, each ending in NUL.
 *
 * The rules follow the reference (the Rust crate spm_precompiled), including its oddities: a grapheme of fewer than six bytes is
 * replaced as a whole by the replacement of its *shortest* known prefix, so that a mark after a full-width letter is lost; longer
 * graphemes are replaced character by character. The result can differ from the reference only in a cluster of more than 100
 * characters, where a window may end inside a grapheme.
 */
export function precompiledNormalizer(base64: string): (text: string) => string {
  const lookUp = charsmapLookUp(Buffer.from(base64, 'base64'));
  const cache = new Map<string, string | null>();
  const replacement = (part: string): string | null => {
    let result = cache.get(part);
    if (result === undefined) {
      result = lookUp(utf8.encode(part));
      if (cache.size === MAX_CACHED) cache.clear();
      cache.set(part, result);
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
    // Windows of whole characters, so that no surrogate pair is split.
    return [...cluster.matchAll(windows)].map(([window]) => byGrapheme(window)).join('');
  };
  const printable = Array.from({ length: 0x5f }, (_, i) => String.fromCharCode(0x20 + i));
  const leavesPrintable = printable.every((character) => lookUp(utf8.encode(character)) === null);
  const affected = new RegExp(`${CLUSTER}|${leavesPrintable ? '[^ -~]' : '\\p{Any}'}`, 'gu');
  return (text) => text.replace(affected, inWindows);
}

const windows = new RegExp(`\\p{Any}{1,${WINDOW / 2}}`, 'gu');

/** Returns a function that looks up the replacement of a key's shortest prefix in the table (UTF-8); null if none is found. */
function charsmapLookUp(blob: Buffer): (key: Uint8Array) => string | null {
  const trieBytes = blob.length < 4 ? -1 : blob.readUInt32LE(0);
  if (trieBytes < 4 || trieBytes % 4 !== 0 || 4 + trieBytes > blob.length) {
    throw new TrawlError('MODEL_INVALID', 'its precompiled_charsmap is not in the format of sentencepiece');
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
      // Bits of the label, and the bit that marks a value.
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

/** Offset from a node to its children, from its unit in a Darts double array. */
function offset(unit: number): number {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}
