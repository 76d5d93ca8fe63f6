import { Type } from 'typebox';
import type { TextKind } from '../../embedding/text-encoder.ts';
import { TrawlError } from '../../errors.ts';
import type { EmbedResult, RetrieverInfo } from '../../retrieval/retriever.ts';
import { RequestError } from '../request-error.ts';
import { nullable, Truncated } from './common-fields.ts';
import { defineDialect } from './dialect.ts';
import { field, isJsonObject } from './read-request.ts';
import { separated } from './search-plan.ts';

/** OpenAI's own limit of texts in one request. */
const MAX_INPUTS = 2_048;
const KIND_SUFFIX = /-(query|passage)$/;

/**
 * OpenAI's embeddings with the index's encoder. Whether a text is a query or a passage, which E5 and its kin must know,
 * is said by `input_type` or by a suffix of the model's name, as in NVIDIA's NIM; without either it is a query.
 */
export const openaiEmbeddings = defineDialect({
  name: 'openai-embeddings',
  path: '/v1/embeddings',
  summary: "Vectors of texts, as OpenAI's API gives them",
  maxItems: MAX_INPUTS,
  request: Type.Object({
    input: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })], {
      description: `A text or a list of up to ${MAX_INPUTS.toLocaleString('en')}. Token ids are refused.`,
    }),
    model: Type.String({ description: "The encoder's name, or that with -query or -passage behind it." }),
    encoding_format: Type.Enum(['float', 'base64'], { default: 'float' }),
    dimensions: nullable(Type.Integer({ minimum: 1 }), "The encoder's own dimension, or absent."),
    input_type: nullable(Type.Enum(['query', 'passage']), 'Our addition: which prefix the texts get.'),
    user: nullable(Type.String(), 'Ignored.'),
  }),
  reply: Type.Object({
    object: Type.String(),
    data: Type.Array(
      Type.Object({
        object: Type.String(),
        index: Type.Integer(),
        embedding: Type.Union([
          Type.Array(Type.Number()),
          Type.String({ description: 'Base64 of the float32 values, little-endian.' }),
        ]),
      }),
    ),
    model: Type.String(),
    usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
    truncated: Truncated,
  }),
  example: { input: ['who designed the Brooklyn Bridge'], model: 'token-average-256', encoding_format: 'float' },
  // OpenAI has no 422.
  statuses: { INVALID_JSON: 400, INVALID_REQUEST: 400, TOO_MANY_QUERIES: 400 },
  errorBody: openaiError,
  check: refuseTokens,
  plan({ input, model, encoding_format, dimensions, input_type }) {
    const inputs = typeof input === 'string' ? [input] : input;
    return {
      queries: inputs.length,
      k: 0,
      async run(retriever, signal) {
        const kind = kindOf(model, input_type, retriever.info);
        if (dimensions !== null && dimensions !== retriever.info.dimension) {
          throw refusal(
            'dimensions',
            `${retriever.info.model.name} has ${retriever.info.dimension} dimensions and was not trained to be cut to ` +
              `${dimensions}. Leave dimensions out.`,
          );
        }
        const result = await retriever.embed({ inputs, kind, signal });
        const truncated = result.outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
        return { timings: result.timings, truncated, pieces: reply(result, retriever.info, model, encoding_format) };
      },
    };
  },
});

function kindOf(model: string, inputType: TextKind | null, info: RetrieverInfo): TextKind {
  const { name } = info.model;
  const suffix = model === name ? undefined : (KIND_SUFFIX.exec(model)?.[1] as TextKind | undefined);
  const bare = suffix === undefined ? model : model.slice(0, -suffix.length - 1);
  if (bare !== name) {
    throw new TrawlError(
      'NOT_FOUND',
      `The model ${JSON.stringify(model)} does not exist here; this server has ${name}, ${name}-query and ${name}-passage.`,
      { details: { param: 'model' } },
    );
  }
  if (suffix !== undefined && inputType !== null && suffix !== inputType) {
    throw refusal('input_type', `The model's name says ${suffix} and input_type says ${inputType}.`);
  }
  return suffix ?? inputType ?? 'query';
}

function refuseTokens(body: unknown): void {
  const input = isJsonObject(body) ? field(body, 'input') : undefined;
  const first: unknown = Array.isArray(input) ? input[0] : undefined;
  if (typeof first !== 'number' && !Array.isArray(first)) return;
  throw refusal('input', "Token ids are another tokenizer's and would be other words here. Send texts.");
}

function refusal(param: string, message: string): RequestError {
  return new RequestError('INVALID_REQUEST', message, [{ type: 'value_error', loc: ['body', param], msg: message }]);
}

function* reply(
  { vectors, outcomes }: EmbedResult,
  { dimension }: RetrieverInfo,
  model: string,
  format: 'float' | 'base64',
): Generator<string> {
  let tokens = 0;
  const truncated: number[] = [];
  yield '{"object":"list","data":[';
  yield* separated(outcomes, (outcome, index) => {
    if (!outcome.ok) throw outcome.error;
    tokens += outcome.tokens;
    if (outcome.truncated) truncated.push(index);
    const vector = vectors.subarray(index * dimension, (index + 1) * dimension);
    const embedding = format === 'base64' ? `"${base64(vector)}"` : `[${vector.join(',')}]`;
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`;
  });
  const cut = truncated.length === 0 ? '' : `,"truncated":[${truncated.join(',')}]`;
  yield `],"model":${JSON.stringify(model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}${cut}}`;
}

function base64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4);
  return bytes.toString('base64');
}

/** `param` is the first field that is wrong; `code` is ours, but for a model that is not there. */
function openaiError(error: TrawlError, status: number): string {
  const param = error instanceof RequestError ? (error.issues[0]?.loc[1] ?? null) : (error.details.param ?? null);
  const code = error.code === 'NOT_FOUND' && param === 'model' ? 'model_not_found' : error.code;
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  const message = status === 500 ? 'The server failed on this request. Its log has the details.' : error.message;
  return JSON.stringify({ error: { message, type, param: typeof param === 'string' ? param : null, code } });
}
