import type { Retriever, RetrieverStatistics } from '../retrieval/retriever.ts';
import type { MetricLine, MetricSet } from './prometheus.ts';
import type { RetrieverHolder } from './retriever-holder.ts';

/** As `SearchLoad.batchSizes` counts them: a batch has at most 1,024 queries. */
const BATCH_SIZES = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];

/** Values by stage; the empty name for one that has none. */
type ByStage = (statistics: RetrieverStatistics) => Readonly<Record<string, number>>;

/** Adds what the indexes are and what they have counted, each under its name. */
export function addIndexMetrics(metrics: MetricSet, holder: () => RetrieverHolder | undefined): void {
  addFacts(metrics, holder);
  /** From the statistics of all indexes, through their reloads. */
  const tell = (
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    lines: (statistics: RetrieverStatistics) => readonly MetricLine[],
  ): void =>
    metrics.told(name, help, type, () =>
      (holder()?.slots ?? []).flatMap(({ name: index, statistics }) =>
        statistics === undefined
          ? []
          : lines(statistics).map(({ labels, ...line }) => ({ ...line, labels: { index, ...labels } })),
      ),
    );
  const add = (name: string, help: string, type: 'counter' | 'gauge', values: ByStage): void =>
    tell(name, help, type, (statistics) =>
      Object.entries(values(statistics)).map(([stage, value]) => ({ value, labels: stage === '' ? {} : { stage } })),
    );
  add('trawl_queue_queries', 'Queries that wait, by what they wait for.', 'gauge', ({ encoder, search }) => ({
    embed: encoder.waitingTexts,
    search: search.waitingQueries,
  }));
  add('trawl_queue_expected_wait_seconds', 'Expected time until those are done.', 'gauge', ({ encoder, search }) => ({
    embed: encoder.expectedWaitMs / 1000,
    search: search.expectedWaitMs / 1000,
  }));
  add('trawl_batches_total', 'Batches, by who took them.', 'counter', ({ encoder, search }) => ({
    embed: encoder.chunks,
    search: search.batches,
  }));
  add('trawl_batch_queries_total', 'Queries of those batches.', 'counter', ({ encoder, search }) => ({
    embed: encoder.texts,
    search: search.queries,
  }));
  const batches = 'trawl_search_batch_queries';
  tell(batches, 'Queries of one batch of the engine.', 'histogram', ({ search }) => {
    let count = 0;
    return [
      ...BATCH_SIZES.map((le, i) => {
        count += search.batchSizes[i] ?? 0;
        return { metricName: `${batches}_bucket`, value: count, labels: { le } };
      }),
      { metricName: `${batches}_bucket`, value: search.batches, labels: { le: '+Inf' } },
      { metricName: `${batches}_sum`, value: search.queries, labels: {} },
      { metricName: `${batches}_count`, value: search.batches, labels: {} },
    ];
  });
  add(
    'trawl_abandoned_queries_total',
    'Queries dropped before they cost anything.',
    'counter',
    ({ encoder, search }) => ({
      embed: encoder.droppedTexts,
      search: search.droppedQueries,
    }),
  );
  add('trawl_full_scans_total', 'Queries for which every row was scored.', 'counter', ({ search }) => ({
    '': search.fullScans,
  }));
  add('trawl_rescored_rows_total', 'Rows scored exactly beside the scans of the codes.', 'counter', ({ search }) => ({
    '': search.rescoredRows,
  }));
  add('trawl_waiting_calls', 'Calls that are not answered yet.', 'gauge', ({ waiting }) => ({ '': waiting.calls }));
  add('trawl_waiting_bytes', 'Bytes of their queries and expected answers.', 'gauge', ({ waiting }) => ({
    '': waiting.bytes,
  }));
  add('trawl_waiting_bytes_max', 'Bytes from which on calls are refused.', 'gauge', ({ waiting }) => ({
    '': waiting.maxBytes,
  }));
  add('trawl_cached_queries_total', 'Queries answered from the cache.', 'counter', ({ sharing }) => ({
    '': sharing.cached,
  }));
  add('trawl_joined_queries_total', 'Queries answered with an equal one under way.', 'counter', ({ sharing }) => ({
    '': sharing.joined,
  }));
  add('trawl_computed_queries_total', 'Queries that were computed.', 'counter', ({ sharing }) => ({
    '': sharing.computed,
  }));
  add('trawl_cache_entries', 'Answers in the cache.', 'gauge', ({ sharing }) => ({ '': sharing.cacheEntries }));
  add('trawl_cache_bytes', 'Bytes of the answers in the cache.', 'gauge', ({ sharing }) => ({
    '': sharing.cacheBytes,
  }));
}

function addFacts(metrics: MetricSet, holder: () => RetrieverHolder | undefined): void {
  const tell = (
    name: string,
    help: string,
    line: (retriever: Retriever, draining: number) => { value: number; labels?: Record<string, string> },
  ): void =>
    metrics.told(name, help, 'gauge', () =>
      (holder()?.slots ?? []).flatMap(({ name: index, retriever, draining }) => {
        if (retriever === undefined) return [];
        const { value, labels = {} } = line(retriever, draining);
        return [{ value, labels: { index, ...labels } }];
      }),
    );
  tell('trawl_index_info', 'Always 1; which generation an index has, and which model.', ({ info }) => ({
    value: 1,
    labels: { generation: info.generation, model: info.model.name, metric: info.metric },
  }));
  tell('trawl_index_rows', 'Passages of an index.', ({ info }) => ({ value: info.rows }));
  tell('trawl_index_resident_bytes', "Bytes of an index's files that want to stay in memory.", ({ info }) => ({
    value: info.memory?.residentBytes ?? 0,
  }));
  tell(
    'trawl_index_mapped_bytes',
    "Bytes of an index's files that are mapped and read here and there.",
    ({ info }) => ({ value: (info.memory?.mappedBytes ?? 0) + (info.memory?.touchedBytes ?? 0) }),
  );
  tell(
    'trawl_index_draining',
    'Generations of an index that were replaced and still answer requests.',
    (_retriever, draining) => ({ value: draining }),
  );
}
