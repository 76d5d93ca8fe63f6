import { markedFigures } from '../../../bench/tables/marked-figures.ts';

/** A figure in the sentences of a page. */
export interface SentenceFigure {
  /** With its unit: `0.872`, `6 to 64 times`, `11.8 million`. */
  readonly text: string;
  /** Where it begins in the prose. */
  readonly at: number;
}

const NUMBER = String.raw`\d(?:[\d,]*\d)?(?:\.\d+)?`;
const UNIT = String.raw`×|%|(?:ns|µs|ms|s|seconds?|min|minutes?|hours?|days?|[KMGT]i?B|[KMGT]i?B\/s|million|times|GFLOP\/s|points|[a-z]+\/s)\b`;
const RANGE = `(?:(?:,|,? to|,? and|,? or|–) ${NUMBER})*`;
/** Numbers with a unit, decimals, and numbers with separated thousands. */
const FIGURE = new RegExp(
  String.raw`(?<![\w.,#/-])${NUMBER}${RANGE}(?: ?(?:${UNIT}))|(?<![\w.,#/-])(?:\d+\.\d+|\d{1,3}(?:,\d{3})+)(?!\.\d|\w|,\d)`,
  'g',
);
/** What only looks like a figure: versions, days, times of programs, widths of instructions. */
const NO_FIGURE =
  /\b(?:Trawl|Node\.js|Python|Java|Lucene|Elasticsearch|Milvus|OpenSearch|SQLite|faiss-cpu|numpy|numba|usearch|onnxruntime|torch|transformers|fastapi|bm25s|sentence-transformers|version|Apache|CycloneDX|glibc|SQuAD|Wikipedia|GCC|Common Changelog) v?[\d.]+(?:,? (?:or|and|to) [\d.]+)*|\d{4}-\d\d-\d\d/g;

/** The sentences of a page on one line: without code, tables, comments and the targets of links. */
export function proseOf(page: string): string {
  return page
    .replaceAll(/^ *```[^\n]*\n[\s\S]*?^ *```/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '')
    .replaceAll(/^\|.*$/gm, '')
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/`[^`]*`/g, '`…`')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/[[\]*]/g, '')
    .replaceAll(/\s+/g, ' ');
}

export function sentenceFigures(prose: string): SentenceFigure[] {
  const hidden = prose.replaceAll(NO_FIGURE, (text) => '·'.repeat(text.length));
  return [...hidden.matchAll(FIGURE)].map((match) => ({ text: match[0].trim(), at: match.index }));
}

/** The figures of a page that no comment in their paragraph takes from a JSON file. Of a range every number needs its own comment. */
export function unmarkedFigures(page: string): string[] {
  return page
    .replaceAll(/^ *```[^\n]*\n[\s\S]*?^ *```/gm, '')
    .split(/\n{2,}/)
    .flatMap((block) => {
      const marked = new Set(markedFigures(block).map(({ shown }) => numbersOf(shown)[0]));
      return sentenceFigures(proseOf(block))
        .map(({ text }) => text)
        .filter((text) => numbersOf(text).some((number) => !marked.has(number)));
    });
}

function numbersOf(text: string): string[] {
  return text.match(new RegExp(NUMBER, 'g')) ?? [];
}
