/**
 * A figure of a sentence that a comment in the same paragraph takes from a JSON file:
 * `<!-- figure 0.872 of bench/results/evaluation.json#rows[system=BM25].metrics.recall@10 -->`, also with `/ 1000` or `* 100` behind the path.
 */
export interface MarkedFigure {
  /** As the sentence has it: `0.872`, `10.75 GB`. */
  readonly shown: string;
  /** Relative to the repository. */
  readonly file: string;
  /** Keys joined by points; `[key=value]` chooses the elements of a list with that value; one has to be left. */
  readonly path: string;
  /** By what the value of the file is divided. */
  readonly divisor: number;
  /** The paragraph without its comments, on one line. */
  readonly paragraph: string;
}

const COMMENT = /<!-- figure (.+?) of ([^\s#]+)#(.+?)(?: ([/*]) ([\d.e]+))? -->/g;
const PATH_PART = /\.?([^.[\]]+)|\[([^=\]]+)=([^\]]*)\]/gy;

export function markedFigures(page: string): MarkedFigure[] {
  return page.split(/\n{2,}/).flatMap((block) => {
    const paragraph = block.replaceAll(/<!--[\s\S]*?-->/g, '').replaceAll(/\s+/g, ' ');
    return [...block.matchAll(COMMENT)].map(([, shown, file, path, operator, operand]) => ({
      shown: shown!,
      file: file!,
      path: path!,
      divisor: operator === undefined ? 1 : operator === '/' ? Number(operand) : 1 / Number(operand),
      paragraph,
    }));
  });
}

/**
 * The value at a path.
 *
 * @throws RangeError if there is none, or it is no number.
 */
export function valueAt(result: unknown, path: string): number {
  let value: unknown = result;
  let end = 0;
  for (const match of path.matchAll(PATH_PART)) {
    if (match.index !== end) break;
    end += match[0].length;
    const [, key, wanted, equal] = match;
    value =
      key === undefined ? chosen(value, wanted!, equal!, path) : (value as Record<string, unknown> | undefined)?.[key];
  }
  if (end !== path.length) throw new RangeError(`${path}: expected keys joined by points, and [key=value]`);
  if (typeof value !== 'number') throw new RangeError(`${path}: there is ${JSON.stringify(value)}, expected a number`);
  return value;
}

/** The element with that value, or all of them if there are several. */
function chosen(value: unknown, key: string, equal: string, path: string): unknown {
  const elements = Array.isArray(value) ? value : [value];
  const found = elements.filter((element) => String((element as Record<string, unknown> | null)?.[key]) === equal);
  if (found.length === 0) throw new RangeError(`${path}: there is no element with ${key} ${equal}`);
  return found.length === 1 ? found[0] : found;
}

/**
 * The number of `shown` replaced by the value, with as many decimals: `0.87` of 0.8721 is `0.87`.
 *
 * @internal Exported for tests.
 */
export function figureText({ shown, divisor }: Pick<MarkedFigure, 'shown' | 'divisor'>, value: number): string {
  const number = /\d[\d,]*(?:\.(\d+))?/;
  // As the tables round.
  const [whole, decimals] = (value / divisor).toFixed(number.exec(shown)?.[1]?.length ?? 0).split('.');
  const grouped = /\d,\d/.test(shown) || whole!.length > 4;
  return shown.replace(
    number,
    [grouped ? Number(whole).toLocaleString('en-US') : whole, decimals ?? []].flat().join('.'),
  );
}

/**
 * The page with every marked figure as its file has it, in the sentence and in the marker.
 *
 * @throws RangeError if the paragraph does not have a figure that changes exactly once.
 */
export function withFigures(page: string, numberAt: (file: string, path: string) => number): string {
  return page
    .split(/(\n{2,})/)
    .map((block) =>
      markedFigures(block).reduce((text, marked) => {
        const { shown, file, path, paragraph } = marked;
        const now = figureText(marked, numberAt(file, path));
        if (now === shown) return text;
        if (paragraph.split(shown).length !== 2) {
          throw new RangeError(
            `${shown} of ${file}#${path} is now ${now}; its paragraph has it not exactly once: ${paragraph}`,
          );
        }
        return text
          .replace(`<!-- figure ${shown} of ${file}#${path}`, `<!-- figure ${now} of ${file}#${path}`)
          .replace(shown, now);
      }, block),
    )
    .join('');
}
