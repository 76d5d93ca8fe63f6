import * as figure from '../report/figures.ts';
import type { SizeRequests, SizeResult, SizeState } from './size-figures.ts';

const seconds = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : `${(ms / 1000).toFixed(1)} s`);
const percent = (share: number | undefined): string =>
  share === undefined ? 'unknown' : `${Math.min(100, Math.round(share * 100))} %`;

const reply = ({ ms, longerThanMs }: SizeRequests): string =>
  ms === null ? `> ${seconds(longerThanMs ?? 0)}` : seconds(ms);
const read = ({ readBytes }: SizeRequests): string => (readBytes === undefined ? '' : figure.bytes(readBytes));

/** Requests by size, in both states of the memory, beside what `trawl serve --plan` expects. */
export function sizeRequests({ steps: { plan, memory, prefilter } }: SizeResult): string[][] {
  return [
    [
      'queries in a request',
      'expected by `--plan`',
      'reply, all memory',
      'read from disk',
      'reply, only the prefilters cached',
      'read from disk',
    ],
    ['---:', '---:', '---:', '---:', '---:', '---:'],
    ...memory.requests.map((request) => {
      const { queries } = request;
      const limited = prefilter.requests.find((other) => other.queries === queries)!;
      const expected = plan.searches.find((search) => search.queries === queries)!;
      return [String(queries), seconds(expected.ms), reply(request), read(request), reply(limited), read(limited)];
    }),
  ];
}

/** Sizes, times of the build and of opening, memory, and what was in the page cache. */
export function sizeFigures({ rows, bytes, steps }: SizeResult): string[][] {
  const { index, scan, open, memory, prefilter } = steps;
  const cached = ({ cached: { prefilters, codes, vectors } }: SizeState): string =>
    `${percent(prefilters)} of the prefilters, ${percent(codes)} of the codes, ${percent(vectors)} of the rows`;
  return [
    ['what', 'figure'],
    ['---', '---'],
    [
      'rows, codes, prefilters, passages on disk',
      [bytes.rows, bytes.codes, bytes.prefilters, bytes.passages].map(figure.bytes).join(', '),
    ],
    [
      'import of the rows in place',
      `${figure.count(index.seconds)} s, at most ${figure.bytes(index.peakBytes)} of memory`,
    ],
    [
      'of this: passages read and stored; codes and checksums of the rows; prefilters, other checksums and merge',
      ['read', 'vectors', 'finish']
        .map((stage) => `${figure.count(index.stageMs[stage as 'read' | 'vectors' | 'finish'] / 1000)} s`)
        .join('; '),
    ],
    ['the server is ready, and its first reply: files not in the page cache', opening(open.cold)],
    ['the same again: files as the first left them in the page cache', opening(open.warm)],
    [
      'memory of the server: its own, and that of mapped files',
      `${figure.bytes(memory.anonymousBytes)}, ${figure.bytes(memory.mappedBytes)}`,
    ],
    ['page cache with all memory', cached(memory)],
    [`page cache in a control group of ${figure.bytes(prefilter.limitBytes)}`, cached(prefilter)],
    [
      'queries whose ten passages and scores equal those of a scan of all rows',
      `${memory.checkedQueries} of ${memory.checkedQueries}, in both states; the scan took ${figure.count(scan.seconds)} s for ${figure.count(rows)} rows`,
    ],
  ];

  function opening({ readyMs, firstMs }: { readyMs: number; firstMs: number }): string {
    return `${seconds(readyMs)}, ${seconds(firstMs)}`;
  }
}
