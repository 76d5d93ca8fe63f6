import type { TrawlError } from '../base/errors.ts';
import { DEFAULT_QUERY_TEMPLATE, type ModelIdentity, type QueryTemplate } from './identity/model-identity.ts';

/** Decides which prefix and which token limit of the model a text gets. */
export type InputType = 'query' | 'passage';

/** A text, or an agent's sub-query with its question and history, which are kept apart because truncation may shorten each. */
export type EncoderInput = string | QuestionAndQuery;

export interface QuestionAndQuery {
  /** Empty if there is none. */
  readonly question: string;
  readonly query: string;
  /** The agent's earlier queries, oldest first. */
  readonly history?: readonly string[];
}

/**
 * What is removed from a text with too many tokens. `tail`: the end, as in other retrieval servers. `question` keeps the query of a
 * `QuestionAndQuery`: it removes history queries, oldest first, and then shortens the question; for a plain text it means `tail`.
 */
export const TRUNCATE_SIDES = ['tail', 'question'] as const;
export type TruncateSide = (typeof TRUNCATE_SIDES)[number];

/**
 * What truncation removed from a text. `tail`: the end (in a `QuestionAndQuery` the end of the query). `history`: the oldest history
 * queries, or all. `question`: all history, and the end of the question or all of it. `question-and-tail`: everything before the
 * query, and its end.
 */
export const TRUNCATIONS = ['nothing', 'tail', 'history', 'question', 'question-and-tail'] as const;
export type Truncation = (typeof TRUNCATIONS)[number];

/** The result for one text. A failed text has a row of zeros in `vectors`, which must not be searched. */
export type EncodeOutcome =
  | {
      readonly ok: true;
      /** Tokens embedded, special tokens included; null if an endpoint counts only whole requests. */
      readonly tokens: number | null;
      /**
       * Whether the text had more tokens than the limit, or a part of it more than 200,000 characters, beyond which nothing is read so
       * that no text occupies a worker for long. An endpoint may truncate a text without saying so.
       */
      readonly truncated: boolean;
      /** `nothing` if `truncated` is false. */
      readonly cut: Truncation;
    }
  | {
      readonly ok: false;
      readonly error: TrawlError;
      /** Whether the text may be at fault: an endpoint fails it alone. */
      readonly isOfText?: boolean;
    };

/** The input with only those parts that the template has. A plain text has only a query. */
export function applyTemplate(input: EncoderInput, template: QueryTemplate = DEFAULT_QUERY_TEMPLATE): EncoderInput {
  if (typeof input === 'string') return input;
  const { query, question, history = [] } = input;
  return {
    query,
    question: template.startsWith('question') ? question : '',
    ...(template.includes('history') && history.length > 0 ? { history } : {}),
  };
}

/**
 * The text that is embedded for an input, before truncation: the prefix, then question, history and query with ` SEPARATOR ` between
 * them (null: one space). A blank question or history query is omitted.
 */
export function composeText(input: EncoderInput, prefix: string, separator: string | null): string {
  const between = separator === null ? ' ' : ` ${separator} `;
  return prefix + [...contextOf(input), typeof input === 'string' ? input : input.query].join(between);
}

/** What stands before the query: question and history, without blank parts. */
export function contextOf(input: EncoderInput): readonly string[] {
  if (typeof input === 'string') return [];
  return [input.question, ...(input.history ?? [])].filter((part) => part.trim() !== '');
}

/** Number of characters (UTF-16 units) of all parts. */
export function countCharacters(input: EncoderInput): number {
  if (typeof input === 'string') return input.length;
  const { question, query, history = [] } = input;
  return history.reduce((sum, { length }) => sum + length, question.length + query.length);
}

export interface EncodeResult {
  /** Row-major, texts × dimension, in the order of the texts. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** Tokens of all texts. Absent: the sum over the outcomes. */
  readonly tokens?: number;
  /** Time during which no worker was encoding any of the texts, in milliseconds; 0 for an encoder without a queue. */
  readonly waitedMs: number;
}

export interface EncodeOptions {
  /** `plain`: without a prefix, and with the larger of the two limits. */
  readonly inputType: InputType | 'plain';
  /** Default `tail`. */
  readonly truncate?: TruncateSide;
  /** Aborting drops the texts that no worker has received and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

/** Queue and counters of one encoder. The counts of encoders that share a pool add up to the pool's. */
export interface EncoderLoad {
  /** Texts that no worker has received. */
  readonly waitingTexts: number;
  /** Expected time until all waiting texts of the pool are done, in milliseconds; 0 before the first measurement. */
  readonly expectedWaitMs: number;
  /** Texts encoded. */
  readonly texts: number;
  /** Texts that were cancelled before a worker received them. */
  readonly droppedTexts: number;
  /** Chunks of work sent to workers. A chunk with texts of several encoders counts for the encoder of its first text. */
  readonly chunks: number;
}

/** The load of an encoder that has no queue and counts nothing. */
export const NO_ENCODER_LOAD: EncoderLoad = Object.freeze({
  waitingTexts: 0,
  expectedWaitMs: 0,
  texts: 0,
  droppedTexts: 0,
  chunks: 0,
});

/** Tokens of all texts of a call; 0 if an endpoint does not count them. */
export function tokensOf({ tokens, outcomes }: Pick<EncodeResult, 'tokens' | 'outcomes'>): number {
  return tokens ?? outcomes.reduce((sum, outcome) => sum + (outcome.ok ? (outcome.tokens ?? 0) : 0), 0);
}

/** Turns texts into vectors, whose bits do not depend on the other texts of the batch if `identity.batchInvariant`. */
export interface TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  /** Separator between question and query (surrounded by spaces), or null for a single space. */
  readonly separator: string | null;
  /** Why every text fails; undefined while the encoder works. */
  readonly failure: TrawlError | undefined;
  readonly load: EncoderLoad;
  /** Calls of `texts` texts each that keep it busy at a time; undefined: a few calls of hundreds of texts. */
  busyCalls?(texts: number): number;
  /** Throws MODEL_MISMATCH if the model has changed, ENDPOINT_FAILED without an answer, or CANCELLED. Absent: it cannot change. */
  readonly check?: (signal?: AbortSignal) => Promise<void>;
  /** A text that fails does not fail the call: see `outcomes`. Rejects with CANCELLED after an abort or `close`. */
  encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult>;
  /** Rejects calls with waiting texts, waits for the others and frees the workers. Safe to call twice. */
  close(): Promise<void>;
}
