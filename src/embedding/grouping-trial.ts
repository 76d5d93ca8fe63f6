import { GROUP_TOKENS } from './token-batch.ts';
import type { TokenizedText } from './truncation.ts';

/** What is needed of a tokenizer. */
interface Framing {
  contentIds(text: string, atMost: number): number[];
  frame(contentIds: readonly number[]): number[];
}

/**
 * Tokens of a text, several for each: short and long, odd and even, so that the rows of a group end at different places of
 * the tiles that a product is computed in.
 */
const LENGTHS = [4, 7, 13, 31];
const WORDS =
  'a river in the north of 7 old towns, which is where he was born; "water" and light: two or more of them were seen by ' +
  'people from many other places before the war began, but nobody knows who made this long list of common English words';
/** Fewer different tokens than this are no trial: a tokenizer that does not know English letters. */
const LEAST_TOKENS = 12;

/**
 * Whether a graph gives a text the same bits in the company of texts of the same length as alone. That is so where every
 * row of a product is summed in an order that does not depend on how many rows there are, and where no step looks at the
 * whole batch, as a graph does that quantises its activations by their largest. Nothing promises it: it is tried on the
 * machine and on the graph at hand. False where a run fails.
 */
export async function tryGrouping(
  tokenizer: Framing,
  run: (texts: readonly TokenizedText[]) => Promise<readonly Float32Array[]>,
): Promise<boolean> {
  const ids = [...new Set(tokenizer.contentIds(WORDS, 200))];
  const framing = tokenizer.frame([]).length;
  if (ids.length < LEAST_TOKENS) return false;
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
        if (!sameBits(alone!, together[text]!)) return false;
      }
    }
    return true;
  } catch {
    return false;
  }
}

function sameBits(a: Float32Array, b: Float32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}
