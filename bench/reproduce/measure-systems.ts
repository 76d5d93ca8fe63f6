import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import type { SystemsResult } from '../tables/systems-result.ts';
import { embedQuestions, type SetFiles, searchVectors, VECTOR_RUNS, vectorsByText, writeIds } from './encoded-set.ts';
import { BUNDLED, EvaluatedSystems, type EvaluatedSystemsOptions } from './evaluated-systems.ts';
import { importVectors, queriesOfIds } from './published-vectors.ts';
import { queriesOfCalls, queriesOfSteps, writeQuestions } from './sub-queries.ts';
import { serveVectorReranker } from './vector-reranker.ts';

/** A corpus with its questions. */
interface TextSet extends SetFiles {
  readonly name: string;
  /** Sub-queries with judgements of their own. Without them, recorded calls may have the sub-queries of some questions. */
  readonly subQueries?: string;
}

/** Vectors of passages and questions that others published, without the texts of the passages. */
interface VectorSet {
  readonly name: string;
  readonly passages: string;
  readonly queries: string;
  /** Files whose lines begin with the ids of the vectors. */
  readonly ids: { readonly passages: string; readonly queries: string };
  readonly topics: string;
  readonly qrels: string;
}

const SAMPLE = join(packageRoot, 'corpus', 'sample');

function textSets(data: string): TextSet[] {
  const shared = (name: string): TextSet => ({
    name,
    corpus: join(data, name, 'corpus.jsonl'),
    queries: join(data, name, 'queries.jsonl'),
  });
  const sample = {
    name: 'sample',
    corpus: join(SAMPLE, 'passages.jsonl'),
    queries: join(SAMPLE, 'questions.jsonl'),
    subQueries: join(SAMPLE, 'sub-queries.jsonl'),
  };
  return [shared('hotpot_val500_pooled'), shared('squad_v11_dev'), sample];
}

function vectorSets(data: string): VectorSet[] {
  const scifact = join(data, 'scifact_tevatron_emb');
  return [
    {
      name: 'SciFact',
      passages: join(scifact, 'corpus_768_f32.npy'),
      queries: join(scifact, 'query_768_f32.npy'),
      ids: { passages: join(scifact, 'corpus_ids.txt'), queries: join(scifact, 'query_ids.txt') },
      topics: join(scifact, 'topics.scifact.test.tsv'),
      qrels: join(scifact, 'qrels.scifact.test.txt'),
    },
  ];
}

/** bfloat16 is compared in precision-quality.ts; without AVX-512 its passages take an hour. */
const PRECISIONS = ['float32', 'int8'] as const;
/** Hits of BM25 that the reranker orders. */
const RERANK_DEPTH = 100;

export interface SystemsOptions extends EvaluatedSystemsOptions {
  /** Folder with hotpot_val500_pooled, squad_v11_dev, scifact_tevatron_emb and, for query forms of HotpotQA, search_calls. */
  readonly data: string;
  /** An encoder to import in each precision; without it only the bundled encoder is measured. */
  readonly checkpoint: string | undefined;
  /** A Python with faiss-cpu and usearch; without it there are no rows of FAISS and usearch. */
  readonly python: string | undefined;
}

/** Measures the rows of the table in bench/quality.md with `trawl eval`. */
export class SystemsMeasurement {
  readonly #options: SystemsOptions;
  readonly #systems: EvaluatedSystems;

  constructor(options: SystemsOptions) {
    this.#options = options;
    this.#systems = new EvaluatedSystems(options);
  }

  async rows(): Promise<SystemsResult['rows']> {
    const { checkpoint, data } = this.#options;
    const model = checkpoint === undefined ? undefined : await this.#systems.imported(checkpoint, PRECISIONS);
    for (const set of textSets(data)) {
      await this.#collection(set, model);
      await this.#queryForms(set, 'bundled', BUNDLED);
      if (model !== undefined) await this.#queryForms(set, 'MiniLM', model);
    }
    for (const set of vectorSets(data)) await this.#published(set);
    return this.#systems.rows;
  }

  /** Encoders, precisions, modes, reranking and graphs over one corpus; compared with the first of them. */
  async #collection(set: TextSet, model: string | undefined): Promise<void> {
    const { work, python } = this.#options;
    const { name } = set;
    const bundled = await this.#indexed(set, BUNDLED, 'float32');
    const ofBundled = (mode: string): string => `${mode}, bundled encoder=${bundled}?mode=${mode}`;
    if (model === undefined) {
      await this.#systems.measure(name, set.queries, [
        ofBundled('dense'),
        `BM25=${bundled}?mode=bm25`,
        ofBundled('hybrid'),
      ]);
      return;
    }
    const indexes = new Map<string, string>();
    for (const precision of PRECISIONS) indexes.set(precision, await this.#indexed(set, model, precision));
    const float32 = indexes.get('float32')!;
    const vectors = { passages: join(work, `${name}.npy`), queries: join(work, `${name}-queries.npy`) };
    await this.#systems.trawl('export', float32, '--npy', vectors.passages, '--overwrite');
    await embedQuestions(set, { model, precision: 'float32' }, vectors.queries);
    const reranker = await serveVectorReranker(await vectorsByText(set, vectors));
    try {
      const rerank = `rerank=${reranker.url}&rerank-api=tei&rerank-depth=${RERANK_DEPTH}`;
      const graphs = python === undefined ? [] : await this.#graphs(set, vectors, python);
      await this.#systems.measure(name, set.queries, [
        ...PRECISIONS.map((precision) => `dense, MiniLM in ${precision}=${indexes.get(precision)}`),
        ...graphs.map((run) => run.replace('=', ' over the float32 vectors=')),
        `BM25=${float32}?mode=bm25`,
        `BM25, its first ${RERANK_DEPTH} by MiniLM's scores=${float32}?mode=bm25&${rerank}`,
        `hybrid, MiniLM in float32=${float32}?mode=hybrid`,
        `hybrid, MiniLM in int8=${indexes.get('int8')}?mode=hybrid`,
        ofBundled('dense'),
        ofBundled('hybrid'),
      ]);
    } finally {
      reranker.close();
    }
  }

  #indexed({ name, corpus }: TextSet, model: string, precision: string): Promise<string> {
    return this.#systems.indexed(`${name}-${model === BUNDLED ? 'bundled' : precision}`, corpus, model, precision);
  }

  async #graphs(set: TextSet, vectors: { passages: string; queries: string }, python: string) {
    const folder = join(this.#options.work, `${set.name}-runs`);
    await searchVectors(folder, vectors, await writeIds(set, folder), { python, signal: this.#options.signal });
    return VECTOR_RUNS.map((run) => `${run.name}=${join(folder, run.file)}`);
  }

  /** An agent's sub-query alone, with the question, the question alone; and all sub-queries of a question, whose lists are fused. */
  async #queryForms(set: TextSet, encoder: string, model: string): Promise<void> {
    const { name, subQueries } = set;
    const calls = join(this.#options.data, 'search_calls', 'all_search_calls.jsonl');
    const recorded = subQueries === undefined && existsSync(calls) ? await queriesOfCalls(set.queries, calls) : [];
    const questions = subQueries === undefined ? recorded : await queriesOfSteps(subQueries);
    const which = subQueries === undefined ? 'questions with recorded sub-queries' : 'two-hop questions';
    if (questions.length === 0) return;
    const index = await this.#indexed(set, model, 'float32');
    if (subQueries !== undefined) {
      await this.#systems.measure(`${name}, sub-queries, ${encoder}`, subQueries, [
        `question=${index}?query-form=question`,
        `sub-query=${index}?query-form=query`,
        `question [SEP] sub-query=${index}?query-form=question-and-query`,
      ]);
    }
    const file = join(this.#options.work, `${name}-sub-queries.jsonl`);
    await writeQuestions(questions, file);
    await this.#systems.measure(`${name}, ${which}, ${encoder}`, file, [
      `question=${index}?query-form=question`,
      `its sub-queries fused=${index}?query-form=queries`,
      `each question [SEP] sub-query fused=${index}?query-form=question-and-queries`,
    ]);
  }

  /** Exact search and graphs over given vectors. Modes, encoders and reranking need texts. */
  async #published(set: VectorSet): Promise<void> {
    const { work, python, signal } = this.#options;
    const folder = join(work, set.name);
    const index = await importVectors(set.passages, set.ids.passages, folder, signal);
    const run = join(folder, 'trawl.txt');
    const queries = await queriesOfIds(set.ids.queries, folder);
    const asked = ['--query-vectors', set.queries, '--queries', queries, '--k', '10'];
    await this.#systems.trawl('search', index, ...asked, '--out', run, '--out-format', 'trec');
    const graphs = python === undefined ? [] : VECTOR_RUNS;
    if (python !== undefined) await searchVectors(folder, set, set.ids, { python, signal });
    await this.#systems.measure(
      `${set.name}, published vectors`,
      set.topics,
      [`Trawl, exact=${run}`, ...graphs.map(({ name, file }) => `${name}=${join(folder, file)}`)],
      ['--qrels', set.qrels],
    );
  }
}
