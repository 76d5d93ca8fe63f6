import type { TextTokenizer } from '../tokenizer/tokenizer.ts';
import type { TokenizedText } from '../tokenizer/truncation.ts';
import { GROUP_TOKENS } from './length-groups.ts';

/** Token counts of the trial's texts, so that the rows of a group end at different positions in the matrix kernel's tiles. */
const LENGTHS = [4, 7, 13, 31];
const WORDS =
  'a river in the north of 7 old towns, which is where he was born; "water" and light: two or more of them were seen by ' +
  'people from many other places before the war began, but nobody knows who made this long list of common English words';
/** With fewer distinct tokens (a tokenizer without English letters), the trial proves nothing. */
const MIN_DISTINCT_TOKENS = 12;

/**
 * Runs texts of equal length together and alone, and returns whether their vectors have the same bits. They differ if the order in
 * which a row of a product is summed depends on the number of rows, or if a step reads the whole batch (quantisation by the largest
 * activation does). onnxruntime guarantees neither, so the trial runs this graph on this machine. Returns false if a run fails.
 */
export async function canGroupTexts(
  tokenizer: Pick<TextTokenizer, 'contentIds' | 'frame'>,
  run: (texts: readonly TokenizedText[]) => Promise<readonly Float32Array[]>,
): Promise<boolean> {
  const ids = [...new Set(tokenizer.contentIds(WORDS, 200))];
  const framing = tokenizer.frame([]).length;
  if (ids.length < MIN_DISTINCT_TOKENS) return false;
  try {
    for (const length of LENGTHS) {
      const size = Math.floor(GROUP_TOKENS / length);
      const texts = Array.from({ length: size }, (_, text) => {
        const content = Array.from({ length: Math.max(1, length - framing) }, (_, at) => {
          return ids[(text * 5 + at * (1 + (text % 7))) % ids.length]!;
        });
        return { ids: tokenizer.frame(content), cut: 'nothing' as const };
      });
      const together = await run(texts);
      for (const text of new Set([0, size >> 1, size - 1])) {
        const [alone] = await run([texts[text]!]);
        if (!haveSameBits(alone!, together[text]!)) return false;
      }
    }
    return true;
  } catch {
    return false;
  }
}

function haveSameBits(a: Float32Array, b: Float32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}
