import type { StageResults } from '../all/all-result.ts';
import { approximateCells } from './approximate-cells.ts';
import { barPlot } from './bar-plot.ts';
import * as figure from './figures.ts';
import { linePlot } from './line-plot.ts';
import type { Markup } from './markup.ts';
import { folded, section, table } from './report-parts.ts';
import { plain, rooflinePlot, rooflinePoints } from './roofline-plot.ts';

/** Exact search over vectors: time by queries at once, memory, and the roofline. */
export function flatSections({ records }: StageResults['flat'], machine?: StageResults['machine']): Markup[] {
  const [any] = records;
  if (any === undefined) return [];
  const engines = [...new Set(records.map(({ engine }) => engine))];
  const counts = [...new Set(records.map(({ queries }) => queries))];
  const of = (engine: string) => records.filter((record) => record.engine === engine);
  const shape = `${figure.count(any.rows)} vectors × ${any.dimension}, k = ${any.k}, ${any.threads} threads`;
  const times = section(
    'Exact search over vectors',
    `${shape}. Lower is better; every engine returns the same lists. Median of ${any.runs} searches after a warm-up, the engines in turns.`,
    linePlot(
      'Time of an exact search by the number of queries at once',
      engines.map((name) => ({
        name,
        line: true,
        points: of(name).map(({ queries, medianMs }) => ({
          x: queries,
          y: medianMs,
          title: `${name}, ${queries} queries: ${figure.ms(medianMs)}`,
          ...(name === 'trawl' ? { label: figure.ms(medianMs) } : {}),
        })),
      })),
      {
        x: { label: 'queries at once', log: true, ticks: counts, format: figure.count },
        y: { label: 'ms a search', log: true, format: plain },
      },
    ),
    folded(
      'Figures',
      table(
        ['queries', 'engine', 'median', 'p95', 'M dot products/s', 'takes, Trawl = 1', 'memory', 'same lists'],
        records.map((record) => [
          String(record.queries),
          record.engine,
          figure.ms(record.medianMs),
          figure.ms(record.p95Ms),
          figure.rate(record.dotsPerS / 1e6),
          record.engine === 'trawl' ? '' : figure.times(record.ratioToTrawl),
          figure.bytes(record.residentBytes),
          record.agreement === null ? '' : `${(100 * record.agreement).toFixed(1)} %`,
        ]),
      ),
    ),
  );
  const most = engines.map((name) => of(name).at(-1)!);
  const memory = section(
    'Memory of an exact search',
    `${shape}, ${figure.count(counts.at(-1)!)} queries at once, or the most with which an engine was measured. Trawl: the file that every search reads in full; its exact rows stay on the disk. The others hold all rows as float32.`,
    barPlot(
      'Memory of an exact search by engine',
      [
        {
          heading: '',
          bars: most.map(({ engine, queries, residentBytes }) => ({
            label: queries === counts.at(-1) ? engine : `${engine}, ${queries} queries`,
            value: figure.bytes(residentBytes),
            parts: [residentBytes],
          })),
        },
      ],
      { format: figure.bytes },
    ),
  );
  if (machine === undefined || machine.peaks === null) return [times, memory];
  const roofline = section(
    'Roofline',
    `Products a second by products per byte that a search reads in order, with more queries at once to the right; the numbers are those of Trawl. ${roofsInWords(machine)} Trawl multiplies int8, the others float32; a search that computes fewer products can be faster although its point is lower.`,
    rooflinePlot('Searches under the roofs of this machine', rooflinePoints(records), machine.peaks),
  );
  return [times, memory, roofline];
}

/** Which roofs were measured, and what that says of points above them. */
function roofsInWords({ environment, peaks }: StageResults['machine']): string {
  const { int8ProductsPerS, float32ProductsPerS, int8Isa = 'avx512-vnni' } = peaks!;
  const limits = 'to the left the memory limits a search, to the right the multipliers';
  const missing = [
    ...(int8ProductsPerS === null ? ['int8'] : []),
    ...(float32ProductsPerS === null ? ['float32'] : []),
  ];
  if (missing.length > 0) {
    return `The roofs were measured on this machine: ${limits}. The ${missing.join(' and the ')} peak of this processor was not measured, so such points have only the roof of the memory.`;
  }
  const measured = `The roofs were measured on this machine, that of int8 with the instructions of ${int8Isa}`;
  return environment.isa === 'amx'
    ? `${measured}: ${limits}. Tiles of AMX, with which Trawl multiplies many queries, are faster than that roof.`
    : `${measured}. A search cannot be above them: ${limits}.`;
}

/** Recall by latency of exact engines and graphs. */
export function approximateSection({ records }: StageResults['approximate']): Markup {
  const [any] = records;
  if (any === undefined) return '' as Markup;
  const engines = [...new Set(records.map(({ engine }) => engine))];
  return section(
    'Recall by latency: exact search and graphs',
    `${figure.count(any.rows)} vectors × ${any.dimension}, one query at a time. Up and to the left is better. Recall is the share of the true ${any.k} nearest rows that an engine returns; the points of a graph are its settings of efSearch. The queries are synthetic and have no matching passage among the rows, which is harder for a graph than a question with an answer. Engines with several threads use them for one query; a graph uses one.`,
    linePlot(
      'Recall by median latency',
      engines.map((name) => ({
        name,
        line: true,
        points: records
          .filter(({ engine }) => engine === name)
          .map(({ effort, p50Ms, recall }) => ({
            x: p50Ms,
            y: recall,
            title: `${name}${effort === null ? '' : `, efSearch ${effort}`}: recall ${figure.share(recall)}, ${figure.ms(p50Ms)}`,
            ...(effort === null ? { label: `${name}, exact` } : { label: String(effort) }),
          })),
      })),
      {
        x: { label: 'median ms a query', log: true, format: plain },
        y: { label: `recall of the true ${any.k}`, log: false, format: (value) => value.toFixed(2), to: 1 },
      },
    ),
    barPlot(
      'Memory by engine',
      [
        {
          heading: 'Memory',
          bars: engines.map((name) => {
            const { residentBytes } = records.find(({ engine }) => engine === name)!;
            return { label: name, value: figure.bytes(residentBytes), parts: [residentBytes] };
          }),
        },
      ],
      { format: figure.bytes },
    ),
    folded(
      'Figures',
      table(
        ['engine', 'efSearch', 'recall', 'p50', 'p99', `queries/s, ${any.queries} at once`, 'made in', 'memory'],
        records.map(approximateCells),
      ),
    ),
  );
}

/** From question to passages: recall of the relevant passages by latency, and memory. */
export function questionsSection({ records, passages }: StageResults['questions']): Markup {
  const [any] = records;
  if (any === undefined) return '' as Markup;
  type Way = (typeof records)[number];
  const wayOf = ({ engine, mode, over }: Way): string => `${engine}, ${mode}${over === 'library' ? ' (library)' : ''}`;
  const nameOf = ({ effort = null, ...way }: Way): string =>
    effort === null ? wayOf(way) : wayOf({ ...way, engine: `${way.engine} ${effort}` });
  const ways = [...new Set(records.map(wayOf))];
  return section(
    'End to end: from the question to its passages',
    `${figure.count(any.questions)} questions over ${figure.count(passages)} passages, one at a time. Up and to the left is better. A server's time is that of a request over HTTP with embedding and passages; a library's is its search alone, without HTTP, encoder and passages; the number of a graph is its efSearch. Memory is the peak of a process, of vector libraries less what it had before the vectors.`,
    linePlot(
      'Recall of relevant passages by median latency',
      ways.map((way) => {
        const own = records.filter((record) => wayOf(record) === way);
        return {
          name: way,
          line: own.length > 1,
          points: own.map((record) => ({
            x: record.p50Ms,
            y: record.recallAt10,
            title: `${nameOf(record)}: recall@10 ${figure.share(record.recallAt10)}, ${figure.ms(record.p50Ms)}`,
            // The settings of a graph are many and near each other: their name is in the legend.
            label: own.length === 1 ? nameOf(record) : String(record.effort),
          })),
        };
      }),
      {
        x: { label: 'median ms a question', log: true, format: plain },
        y: { label: 'recall@10', log: false, format: (value) => value.toFixed(2) },
      },
    ),
    barPlot(
      'Memory by engine',
      [
        {
          heading: 'Memory',
          bars: ways.flatMap((way) => {
            const bytes = records.find((record) => wayOf(record) === way)!.residentBytes;
            return bytes === null ? [] : [{ label: way, value: figure.bytes(bytes), parts: [bytes] }];
          }),
        },
      ],
      { format: figure.bytes },
    ),
    table(
      ['engine', 'recall@10', 'p50', 'p99', 'memory'],
      records.map((record) => [
        nameOf(record),
        figure.share(record.recallAt10),
        figure.ms(record.p50Ms),
        figure.ms(record.p99Ms),
        record.residentBytes === null ? '' : figure.bytes(record.residentBytes),
      ]),
    ),
  );
}
