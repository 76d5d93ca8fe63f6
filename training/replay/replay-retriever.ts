import { TrawlError } from '../../src/base/errors.ts';
import { RunningCalls } from '../../src/base/running-calls.ts';
import { applyTemplate } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { PassageStore } from '../../src/index/passages/passage-store.ts';
import { Admission } from '../../src/search/admission.ts';
import { EMPTY_ANSWER, type QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { inputOf, type RetrieveCall, type RetrieveResult } from '../../src/search/calls/retrieve-call.ts';
import type { FindCall, FindResult, OpenRetriever } from '../../src/search/retriever.ts';
import type { RetrieverInfo } from '../../src/search/retriever-info.ts';
import { NO_STATISTICS, type RetrieverStatistics } from '../../src/search/retriever-statistics.ts';
import { Stopwatch } from '../../src/search/timings.ts';
import { type AnswerKey, answerId, answerKey, replayedAnswer, type StoredAnswer } from './stored-answer.ts';

/** What a query gets that was not recorded. */
export const UNRECORDED = ['error', 'empty'] as const;
export type Unrecorded = (typeof UNRECORDED)[number];

interface ReplayParts {
  readonly info: RetrieverInfo;
  readonly answers: PassageStore;
  readonly passages: PassageStore;
  /** The row in the index of each passage of the bundle, ascending. */
  readonly rows: Float64Array;
  readonly uniqueIds: boolean;
  readonly unrecorded: Unrecorded;
  readonly maxWaitingBytes: number;
}

const NAMED_SETTINGS = 3;

/**
 * Answers from a bundle, without a corpus and without an encoder: a query gets the hits that were recorded for it, in the same settings.
 * Anything else that an index can do is NOT_SUPPORTED.
 */
export class ReplayRetriever implements OpenRetriever {
  readonly info: RetrieverInfo;
  readonly #parts: ReplayParts;
  readonly #admission: Admission;
  readonly #calls = new RunningCalls('The bundle is being closed.');

  constructor(parts: ReplayParts) {
    this.info = parts.info;
    this.#admission = new Admission(parts.info, parts.maxWaitingBytes, () => NO_STATISTICS);
    this.#parts = parts;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const result = await this.#calls.run(() => this.#admission.run('retrieve', call, () => this.#retrieve(call)));
    const [first] = result.outcomes;
    if (first?.ok === true) this.#admission.observe(first.hits);
    return result;
  }

  /** Passages by row, and by id where ids are unique. A passage that the bundle lacks is NOT_RECORDED: the index may have it. */
  find(call: FindCall): Promise<FindResult> {
    return this.#calls.run(() => this.#admission.run('find', call, () => this.#find(call)));
  }

  readonly explain = (): Promise<never> => this.#refuse('the parts of scores');
  readonly score = (): Promise<never> => this.#refuse('scores of given passages');
  readonly searchTree = (): Promise<never> => this.#refuse('searches by query trees');
  readonly select = (): Promise<never> => this.#refuse('sets of rows');
  readonly nearest = (): Promise<never> => this.#refuse('searches by vectors');
  readonly embed = (): Promise<never> => this.#refuse('vectors');
  readonly rerank = (): Promise<never> => this.#refuse('scores of texts');
  readonly cut = (): Promise<never> => this.#refuse('texts cut by tokens');

  get failure(): TrawlError | undefined {
    return this.#parts.answers.failure ?? this.#parts.passages.failure;
  }

  statistics(): RetrieverStatistics {
    return { ...NO_STATISTICS, waiting: this.#admission.load };
  }

  close(): Promise<void> {
    const { answers, passages } = this.#parts;
    return this.#calls.close(async () => {
      await Promise.all([answers.close(), passages.close()]);
    });
  }

  #refuse(what: string): Promise<never> {
    const reason = `${this.info.index} is replayed from a bundle, which has recorded answers only, not ${what}.`;
    return Promise.reject(new TrawlError('NOT_SUPPORTED', `${reason} Serve the index for them.`));
  }

  async #retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, k, exclude = [], signal } = call;
    const { answers } = this.#parts;
    const { modes, model } = this.info;
    const mode = call.mode ?? modes[0];
    if (exclude.length > 0 && (mode === 'hybrid' || call.rerank !== undefined)) {
      return this.#refuse('hybrid or reranked lists without excluded passages');
    }
    const excluded = new Set(exclude);
    const watch = new Stopwatch();
    const keys = queries.map((query) => answerKey(query, call, { mode: modes[0]!, model }));
    const stored = await watch.time('search', async () => {
      const found = await answers.find('id', keys.map(answerId), 1, signal);
      const texts = await answers.getMany(found.flat(), signal);
      let next = 0;
      return found.map((rows) => (rows.length === 0 ? undefined : (JSON.parse(texts[next++]!) as StoredAnswer)));
    });
    const outcomes = await watch.time('search', () =>
      Promise.all(stored.map((answer, i) => this.#checked(answer, keys[i]!, call))),
    );
    // Any of the recorded hits may be excluded.
    const read = excluded.size === 0 ? k : Number.POSITIVE_INFINITY;
    const rows = outcomes.flatMap((answer) => (answer instanceof TrawlError ? [] : answer.rows.slice(0, read)));
    const documents = await watch.time('fetch', () => this.#documents(rows, signal));
    const prefix = mode === 'bm25' ? '' : (model?.prefixes.query ?? '');
    let next = 0;
    const answered = outcomes.map((answer, i): QueryOutcome => {
      if (answer instanceof TrawlError) return this.#unrecorded(answer);
      const count = Math.min(read, answer.rows.length);
      next += count;
      const input = applyTemplate(inputOf(queries[i]!), call.template ?? model?.queryTemplate);
      const replayed = replayedAnswer(answer, documents.slice(next - count, next), input, prefix);
      if (excluded.size === 0) return replayed;
      const hits = replayed.hits.filter(({ document }) => !excluded.has(documentFields(document).id ?? ''));
      if (hits.length >= k || answer.rows.length < answer.k) return { ...replayed, hits: hits.slice(0, k) };
      const left = `of which ${hits.length} are not excluded, and ${k} hits are asked for`;
      const reason = `The query was recorded with k = ${answer.k}, ${left}. Record it with a larger k.`;
      return this.#unrecorded(new TrawlError('NOT_RECORDED', reason, { details: { recordedK: answer.k, k } }));
    });
    return { outcomes: answered, timings: watch.timings };
  }

  /** The answer if it has k hits or all that the search can find; else why there is none. */
  async #checked(
    answer: StoredAnswer | undefined,
    key: AnswerKey,
    { k, signal }: RetrieveCall,
  ): Promise<StoredAnswer | TrawlError> {
    if (answer === undefined) return this.#notRecorded(key, signal);
    if (answer.k >= k || answer.rows.length < answer.k) return answer;
    return new TrawlError(
      'NOT_RECORDED',
      `The query was recorded with k = ${answer.k}, and ${k} hits are asked for. Ask for at most ${answer.k}, or record it with a larger k.`,
      { details: { recordedK: answer.k, k } },
    );
  }

  async #notRecorded({ text, settings }: AnswerKey, signal: AbortSignal | undefined): Promise<TrawlError> {
    const { answers } = this.#parts;
    const [rows] = await answers.find('document', [text], NAMED_SETTINGS, signal);
    const others = (await answers.getMany(rows!, signal)).map((json) => (JSON.parse(json) as StoredAnswer).settings);
    const why =
      others.length === 0
        ? 'The query was not recorded'
        : `The query was recorded with the settings ${others.join(' and ')}, not with ${settings}`;
    return new TrawlError(
      'NOT_RECORDED',
      `${why}. The bundle has ${answers.rows} recorded answers of ${this.info.index}; record the query, or serve the index.`,
      { details: { answers: answers.rows } },
    );
  }

  #unrecorded(error: TrawlError): QueryOutcome {
    if (this.#parts.unrecorded === 'error') return { ok: false, error };
    // No search was made, so nothing is proved.
    return { ...EMPTY_ANSWER, certificate: { exact: false, rescored: null } };
  }

  async #find({ by, keys, limit, filter, views = [], signal }: FindCall): Promise<FindResult> {
    const watch = new Stopwatch();
    if (filter !== undefined || views.length > 0) return this.#refuse('passages by filter or view');
    if (by !== 'row' && (by !== 'id' || !this.#parts.uniqueIds)) return this.#refuse(`passages by ${by}`);
    const places = await watch.time('search', async () =>
      by === 'row'
        ? keys.map((key) => this.#placeOf(/^\d{1,15}$/.test(key) ? Number(key) : -1))
        : (await this.#parts.passages.find(by, keys, limit, signal)).map(([place]) => place),
    );
    const missing = places.indexOf(undefined);
    if (missing !== -1) {
      throw new TrawlError(
        'NOT_RECORDED',
        `The bundle has no passage with the ${by} ${JSON.stringify(keys[missing]!.slice(0, 100))}: it has the ${this.#parts.rows.length} passages of recorded answers. Serve the index for others.`,
      );
    }
    const documents = await watch.time('fetch', () => this.#parts.passages.getMany(places as number[], signal));
    const found = places.map((place, i) => [{ row: this.#parts.rows[place!]!, document: documents[i]! }]);
    return { found, timings: watch.timings };
  }

  #documents(rows: readonly number[], signal: AbortSignal | undefined): Promise<string[]> {
    const places = rows.map((row) => {
      const place = this.#placeOf(row);
      if (place === undefined) {
        throw new TrawlError('INDEX_FILE_FOREIGN', `The bundle lacks row ${row} of a recorded answer. Make it again.`);
      }
      return place;
    });
    return this.#parts.passages.getMany(places, signal);
  }

  /** The number of a passage in the bundle by its row in the index; undefined if the bundle lacks it. */
  #placeOf(row: number): number | undefined {
    const { rows } = this.#parts;
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (rows[middle]! < row) low = middle + 1;
      else high = middle;
    }
    return rows[low] === row ? low : undefined;
  }
}
