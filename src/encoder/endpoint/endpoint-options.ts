import type { EmbeddingApi } from '../identity/endpoint-record.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import type { ModelOverrides } from '../model/model-overrides.ts';

/** How an encoder behind HTTP is used. */
export interface EndpointOptions {
  /** Default: as the index records, else the first of `/v1/embeddings`, `/embeddings`, `/embed` (TEI: `/embed`) that the server has. */
  readonly api?: EmbeddingApi;
  /** `model` of the requests. Default: the endpoint's only model. */
  readonly model?: string;
  /** Sent as `authorization: Bearer`. Never part of a message or a manifest. */
  readonly apiKey?: string;
  /** Time limit of one request, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Requests at the same time to each endpoint. Default: 8. */
  readonly requests?: number;
  /** Most texts of a request, at most the limit that the endpoint states. Default: 32. */
  readonly batchTexts?: number;
  /** Most tokens of a request, estimated with four characters per token. Default: 16,384. */
  readonly batchTokens?: number;
  /** Members added to the requests of queries and of passages, such as `{"prompt_name": "query"}`. */
  readonly queryRequest?: Readonly<Record<string, unknown>>;
  readonly passageRequest?: Readonly<Record<string, unknown>>;
  /** See `TextEncoder.separator`. Default: null. */
  readonly separator?: string;
  /** Attempts of a request that is refused with 429 or 503, or that gets no answer. Default: 5. */
  readonly attempts?: number;
  /** Longest pause between two attempts, in milliseconds. Default: 10,000. */
  readonly maxWaitMs?: number;
  /** First pause, in milliseconds. Default: 250. */
  readonly firstWaitMs?: number;
  /** Milliseconds between two checks of the probes; 0: they are checked at the opening alone. Default: 0. */
  readonly checkEveryMs?: number;
  /** Whether an endpoint that has changed fails every text, or is only reported to `onWarning`. Default: `refuse`. */
  readonly onChange?: 'refuse' | 'report';
}

export interface EndpointModelOptions extends EndpointOptions {
  readonly overrides?: ModelOverrides;
  /** The model of an index, whose prefixes and settings the encoder takes. */
  readonly recorded?: ModelIdentity;
}
