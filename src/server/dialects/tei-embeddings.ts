import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { packageVersion } from '../../base/package-root.ts';
import { normalizeL2 } from '../../encoder/inference/pooling.ts';
import { NO_TIMINGS } from '../../search/timings.ts';
import { defineDialect, type Plan } from './dialect.ts';
import { nullable, refuse } from './parts/common-fields.ts';
import { pieces, separated } from './parts/search-plan.ts';
import { TEI_ERRORS } from './rerank/tei-rerank.ts';

/** The names of prompts in sentence-transformers' models, and which prefix each means. */
const PROMPTS = { query: 'query', passage: 'passage', document: 'passage' } as const;

const Embedding = Type.Object({
  inputs: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })], {
    description: 'One text, or a list. Token ids are refused.',
  }),
  normalize: Type.Boolean({
    default: true,
    description: 'Whether vectors get the length 1. false is refused if the encoder normalises them itself.',
  }),
  truncate: nullable(Type.Boolean(), "false: a text over the model's token limit is refused. Absent: it is truncated."),
  truncation_direction: nullable(
    Type.Enum(['Left', 'Right', 'left', 'right']),
    "Only the end of a text can be removed: with left, a text over the model's token limit is refused.",
  ),
  prompt_name: nullable(
    Type.Enum(Object.keys(PROMPTS) as (keyof typeof PROMPTS)[]),
    "The model's prefix of a text. Absent: none, as in the original.",
  ),
  dimensions: nullable(Type.Integer({ minimum: 1 }), "Absent, or the encoder's own dimension."),
});

const parts = {
  ...TEI_ERRORS,
  request: Embedding,
  reply: Type.Array(Type.Array(Type.Number()), { description: 'The vectors, in the order of the texts.' }),
  example: { inputs: ['who designed the Brooklyn Bridge'], prompt_name: 'query' },
  plan: embeddingPlan,
};

/** Embeddings as text-embeddings-inference (TEI) has them, with the index's encoder. */
export const teiEmbed = defineDialect({
  ...parts,
  name: 'tei-embed',
  path: '/embed',
  summary: 'Embeddings (text-embeddings-inference)',
  projects: [
    {
      name: 'text-embeddings-inference (TEI): embeddings',
      setting: "the base URL `http://HOST:8000`, as of LlamaIndex's TextEmbeddingsInference",
      checkedAgainst: "huggingface_hub 2.4.0, LlamaIndex's client 0.6.0",
    },
  ],
});

/** The same at the root, where huggingface_hub's InferenceClient posts to a server that it has by its base URL. */
export const teiEmbedRoot = defineDialect({
  ...parts,
  name: 'tei-embed-root',
  path: '/',
  summary: "Embeddings (huggingface_hub's InferenceClient and LangChain's HuggingFaceEndpointEmbeddings)",
  section: 'tei-embed',
});

function embeddingPlan(request: Static<typeof Embedding>): Plan {
  const { inputs, normalize, truncate, truncation_direction, prompt_name, dimensions } = request;
  const texts = typeof inputs === 'string' ? [inputs] : inputs;
  const inputType = prompt_name === null ? 'plain' : PROMPTS[prompt_name];
  return {
    queries: texts.length,
    k: 0,
    given: texts,
    async run(retriever, signal) {
      const { model, dimension } = retriever.info;
      if (dimensions !== null && dimensions !== dimension && model !== null) {
        refuse(['dimensions'], `Expected ${dimension}, the dimension of ${model.name}, or nothing`);
      }
      if (!normalize && model?.normalize === true) {
        refuse(['normalize'], `Expected true, because ${model.name} gives all vectors the length 1`);
      }
      const { vectors, outcomes, timings } = await retriever.embed({ inputs: texts, inputType, signal });
      const rows = outcomes.map((outcome, i) => {
        if (!outcome.ok) throw outcome.error;
        if (outcome.truncated && (truncate === false || truncation_direction?.toLowerCase() === 'left')) {
          throw tooLong(i, model?.maxTokens[inputType === 'query' ? 'query' : 'passage'] ?? null, truncate);
        }
        const vector = vectors.subarray(i * dimension, (i + 1) * dimension);
        return normalize && model?.normalize !== true ? normalizeL2(vector) : vector;
      });
      const truncated = outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
      return { timings, truncated, pieces: pieces`[${separated(rows, (row) => `[${row.join(',')}]`)}]` };
    },
  };
}

function tooLong(position: number, limit: number | null, truncate: boolean | null): TrawlError {
  const most = limit === null ? "the model's limit of tokens" : `${limit} tokens, the model's limit`;
  const advice =
    truncate === false ? 'Shorten it, or send truncate: true.' : 'Shorten it, or leave truncation_direction out.';
  return new TrawlError('QUERY_TOO_LONG', `inputs[${position}] has more than ${most}. ${advice}`);
}

/** What TEI says of its model. `server` tells Trawl's own endpoint client that the prefixes are this server's. */
export const teiInfo = defineDialect({
  ...TEI_ERRORS,
  name: 'tei-info',
  method: 'GET',
  path: '/info',
  summary: 'The encoder and its limits (text-embeddings-inference)',
  section: 'tei-embed',
  request: Type.Object({}),
  reply: Type.Object({
    server: Type.Literal('trawl'),
    version: Type.String({ description: 'Version of Trawl.' }),
    model_id: Type.String({ description: 'Name of the encoder, else of the reranker.' }),
    model_sha: Type.Union([Type.String(), Type.Null()]),
    model_dtype: Type.Union([Type.String(), Type.Null()], { description: 'Precision of the encoder.' }),
    model_type: Type.Object({
      embedding: Type.Optional(Type.Object({ pooling: Type.String() })),
      reranker: Type.Optional(Type.Object({ id2label: Type.Object({}), label2id: Type.Object({}) })),
    }),
    max_input_length: Type.Union([Type.Integer(), Type.Null()], { description: 'Tokens of a text.' }),
    max_client_batch_size: Type.Integer({ description: 'Texts of a request.' }),
    auto_truncate: Type.Boolean(),
  }),
  example: {},
  plan: (_request, { maxQueries }) => ({
    queries: 0,
    k: 0,
    async run({ info: { model, reranker } }) {
      if (model === null && reranker === null) {
        throw new TrawlError('NOT_SUPPORTED', 'The index has no encoder and the server no reranker.');
      }
      const facts = {
        server: 'trawl',
        version: packageVersion,
        model_id: model?.name ?? reranker?.name,
        model_sha: model?.sha256 ?? null,
        model_dtype: model?.precision ?? null,
        model_type: {
          embedding: model === null ? undefined : { pooling: model.pooling },
          reranker: reranker === null ? undefined : { id2label: { 0: 'LABEL_0' }, label2id: { LABEL_0: 0 } },
        },
        max_input_length: model === null ? (reranker?.maxTokens ?? null) : model.maxTokens.passage,
        max_client_batch_size: maxQueries,
        auto_truncate: true,
      };
      return { timings: NO_TIMINGS, pieces: [JSON.stringify(facts)] };
    },
  }),
});
