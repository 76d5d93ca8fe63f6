import type { StageResults } from '../all/all-result.ts';
import type { ServeRecord } from '../serve/serve-case.ts';
import { STEADY_LOADS } from '../serve/serve-loads.ts';
import { barPlot } from './bar-plot.ts';
import * as figure from './figures.ts';
import { linePlot } from './line-plot.ts';
import { loadName, rolloutServer } from './load-names.ts';
import type { Markup } from './markup.ts';
import { folded, section, table } from './report-parts.ts';
import { plain } from './roofline-plot.ts';

/** Of a load with several servers of Trawl, the one with its default settings, or the only one. */
const isPlainTrawl = ({ engine }: ServeRecord): boolean => engine.startsWith('trawl');

export function serveSections({ records, rows, model }: StageResults['serve']): Markup[] {
  const steady = (STEADY_LOADS as readonly string[]).map(String);
  const named = records.filter(({ load }) => !steady.includes(load));
  const staged = named.filter((record) => record.stages !== null && isPlainTrawl(record));
  const names = staged[0]?.stages?.names ?? [];
  const shape = `${figure.count(rows)} passages, ${model}`;
  // Only stages that take a visible part of some bar.
  const shown = names.flatMap((name, i) =>
    staged.some(({ stages }) => stages!.percentiles.some(({ ms }) => ms[i]! > 0.004 * sum(ms))) ? [{ name, i }] : [],
  );
  const latency = section(
    "Latency of Trawl's server by stage",
    `${shape}. What the latency of requests at a percentile consists of, by the server's own clock (server-timing): means over the requests within 2 % of that percentile. «rest» is the connection and the wait outside of the server's handler. The bars of each load have their own scale.`,
    ...named
      .filter((record) => staged.includes(record))
      .map((record) =>
        barPlot(
          `Latency by stage: ${loadName(record.load)}`,
          [
            {
              heading: `${loadName(record.load)}${record.load === 'rollouts' ? `: ${serverName(record)}` : ''}`,
              bars: shownPercentiles(record).map(({ percent, ms }) => ({
                label: record.requests < FEW_REQUESTS ? middleName(record) : `p${percent}`,
                value: figure.ms(sum(ms)),
                parts: shown.map(({ i }) => ms[i]!),
              })),
            },
          ],
          { format: figure.ms, partNames: record === staged.at(-1) ? shown.map(({ name }) => name) : [] },
        ),
      ),
  );
  return [
    latency,
    throughput(
      records.filter(({ load }) => steady.includes(load)),
      shape,
    ),
    section(
      'Servers under the loads of training frameworks',
      `${shape}. Both servers in turns under the same recorded queries. The last column is above 1 where Trawl is better: by latency for one client, else by throughput.`,
      table(
        ['load', 'server', 'queries/s', 'p50', 'p99', 'slowest', 'failed, wrong', 'memory', 'Trawl better by'],
        named.map((record) => [
          loadName(record.load),
          serverName(record),
          figure.rate(record.queriesPerS),
          figure.ms(record.p50Ms),
          figure.ms(record.p99Ms),
          figure.ms(record.maxMs),
          `${record.errors}, ${record.wrong}`,
          record.residentBytes === null ? '' : figure.bytes(record.residentBytes),
          record.ratioToBaseline === null || !isPlainTrawl(record) ? '' : figure.times(record.ratioToBaseline),
        ]),
      ),
    ),
  ];
}

function throughput(records: readonly ServeRecord[], shape: string): Markup {
  const engines = [...new Set(records.map(({ engine }) => engine))];
  const counts = [...new Set(records.map(({ clients }) => clients))];
  return section(
    'Throughput by clients',
    `${shape}. Each client sends one query after the other over a kept connection; no answer comes from a cache. Higher is better.`,
    linePlot(
      'Queries a second by the number of clients',
      engines.map((engine) => ({
        name: label(engine),
        line: true,
        points: records
          .filter((record) => record.engine === engine)
          .map(({ clients, queriesPerS, p99Ms }) => ({
            x: clients,
            y: queriesPerS,
            title: `${label(engine)}, ${clients} clients: ${figure.rate(queriesPerS)} queries/s, p99 ${figure.ms(p99Ms)}`,
            label: figure.rate(queriesPerS),
          })),
      })),
      {
        x: { label: 'clients', log: true, ticks: counts, format: figure.count },
        y: { label: 'queries/s', log: false, format: plain, from: 0 },
      },
    ),
    folded(
      'Figures',
      table(
        ['clients', 'server', 'queries/s', 'p50', 'p99'],
        records.map((record) => [
          String(record.clients),
          label(record.engine),
          figure.rate(record.queriesPerS),
          figure.ms(record.p50Ms),
          figure.ms(record.p99Ms),
        ]),
      ),
    ),
  );
}

/** Fewer requests have no percentiles to speak of. */
const FEW_REQUESTS = 20;

function shownPercentiles({ stages, requests }: ServeRecord) {
  return requests < FEW_REQUESTS ? stages!.percentiles.slice(0, 1) : stages!.percentiles;
}

/** Which of few requests has the stages: of an even number, the slower one of the middle (serve/latency-stages.ts). */
function middleName({ requests }: ServeRecord): string {
  if (requests === 2) return 'slower of 2';
  return requests % 2 === 0 ? 'upper median' : 'median';
}

/** Only where several servers of Trawl are compared do their options matter. */
function serverName({ engine, load }: ServeRecord): string {
  const name = label(engine);
  return load === 'rollouts' && name === 'trawl' ? `trawl, ${rolloutServer(engine)}` : name;
}

function label(engine: string): string {
  return engine.startsWith('trawl') ? 'trawl' : engine;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
