import { Type } from 'typebox';
import { encodeVector } from '../../base/base64-vector.ts';
import { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { type InputType, tokensOf } from '../../encoder/text-encoder.ts';
import type { EmbedResult } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { RequestError } from '../errors/request-error.ts';
import { defineDialect } from './dialect.ts';
import { nullable, Truncated } from './parts/common-fields.ts';
import { field } from './parts/read-request.ts';
import { pieces, separated } from './parts/search-plan.ts';

/** OpenAI's limit of texts per request. */
const MAX_INPUTS = 2_048;

/** Input types, each a suffix that a model's name may have. */
const INPUT_TYPES = ['query', 'passage'] as const satisfies readonly InputType[];

/**
 * OpenAI's embeddings with the index's encoder. `input_type`, or a suffix of the model's name as in NVIDIA's NIM, says whether the
 * texts are queries or passages, because models such as E5 have different prefixes for them. Default: query.
 */
export const openaiEmbeddings = defineDialect({
  name: 'openai-embeddings',
  path: '/v1/embeddings',
  summary: "Embeddings in the format of OpenAI's API",
  maxItems: MAX_INPUTS,
  request: Type.Object({
    input: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })], {
      description: `One text, or a list of at most ${MAX_INPUTS}. Token ids are refused.`,
    }),
    model: Type.String({
      description: "The encoder's name, optionally followed by -query or -passage. GET /v1/models lists all.",
    }),
    encoding_format: Type.Enum(['float', 'base64'], { default: 'float' }),
    dimensions: nullable(Type.Integer({ minimum: 1 }), "Absent, or the encoder's own dimension."),
    input_type: nullable(
      Type.Enum([...INPUT_TYPES]),
      'An addition of Trawl: whether the texts are queries or passages.',
    ),
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
          Type.String({ description: 'Little-endian float32 values in base64.' }),
        ]),
      }),
    ),
    model: Type.String(),
    usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
    truncated: Truncated,
  }),
  example: { input: ['who designed the Brooklyn Bridge'], model: 'token-average-256', encoding_format: 'float' },
  // OpenAI's API has no 422.
  statuses: { INVALID_JSON: 400, INVALID_REQUEST: 400, TOO_MANY_QUERIES: 400 },
  errorBody: openaiError,
  check: refuseTokens,
  plan({ input, model, encoding_format, dimensions, input_type }) {
    const inputs = typeof input === 'string' ? [input] : input;
    return {
      queries: inputs.length,
      k: 0,
      given: inputs,
      models: [model, readModel(model).bare],
      async run(retriever, signal) {
        const { info } = retriever;
        const inputType = chosenInputType(model, input_type, info);
        if (dimensions !== null && dimensions !== info.dimension) {
          throw refusal(
            'dimensions',
            `${info.model?.name} has ${info.dimension} dimensions and cannot be shortened to ${dimensions}. Omit dimensions.`,
          );
        }
        const result = await retriever.embed({ inputs, inputType, signal });
        const truncated = result.outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
        return { timings: result.timings, truncated, pieces: reply(result, info, model, encoding_format) };
      },
    };
  },
});

/** The values of `model` that select an encoder. */
export function modelIds(encoder: string): string[] {
  return [encoder, ...INPUT_TYPES.map((inputType) => `${encoder}-${inputType}`)];
}

/** Splits a model's name into the bare name and the input type of its suffix; undefined if it has no such suffix. */
function readModel(model: string): { readonly bare: string; readonly inputType: InputType | undefined } {
  const inputType = INPUT_TYPES.find((each) => model.endsWith(`-${each}`));
  return { bare: inputType === undefined ? model : model.slice(0, -inputType.length - 1), inputType };
}

function chosenInputType(model: string, requested: InputType | null, info: RetrieverInfo): InputType {
  // An index without vectors refuses to embed, whatever the model.
  if (info.model === null) return 'query';
  const { name } = info.model;
  if (model === name) return requested ?? 'query';
  const { bare, inputType } = readModel(model);
  if (bare !== name || inputType === undefined) throw modelNotFound(model, modelIds(name));
  if (requested !== null && requested !== inputType) {
    throw refusal('input_type', `The model ${model} is for input_type ${inputType}, but input_type is ${requested}.`);
  }
  return inputType;
}

export function modelNotFound(model: string, known: readonly string[]): TrawlError {
  return new TrawlError(
    'NOT_FOUND',
    `Model ${JSON.stringify(model.slice(0, 100))} not found. Expected ${known.slice(0, 20).join(', ')}.`,
    { details: { param: 'model' } },
  );
}

function refuseTokens(body: unknown): void {
  const input = isObject(body) ? field(body, 'input') : undefined;
  const first: unknown = Array.isArray(input) ? input[0] : undefined;
  if (typeof first !== 'number' && !Array.isArray(first)) return;
  throw refusal('input', 'Token ids are not supported, because they belong to another tokenizer. Send texts.');
}

function refusal(param: string, message: string): RequestError {
  return new RequestError('INVALID_REQUEST', message, [{ type: 'value_error', loc: ['body', param], msg: message }]);
}

function reply(result: EmbedResult, { dimension }: RetrieverInfo, model: string, format: 'float' | 'base64') {
  const { vectors, outcomes } = result;
  const data = separated(outcomes, (outcome, index) => {
    if (!outcome.ok) throw outcome.error;
    const vector = vectors.subarray(index * dimension, (index + 1) * dimension);
    const embedding = format === 'base64' ? `"${encodeVector(vector)}"` : `[${vector.join(',')}]`;
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`;
  });
  const tokens = tokensOf(result);
  const truncated = outcomes.flatMap((outcome, index) => (outcome.ok && outcome.truncated ? [index] : []));
  const rest = {
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    truncated: truncated.length === 0 ? undefined : truncated,
  };
  return pieces`{"object":"list","data":[${data}],${JSON.stringify(rest).slice(1)}`;
}

/** `param` is the first wrong field. `code` is Trawl's code, except for OpenAI's `model_not_found`. */
function openaiError(error: TrawlError, status: number): string {
  const param = error instanceof RequestError ? (error.issues[0]?.loc[1] ?? null) : (error.details.param ?? null);
  const code = error.code === 'NOT_FOUND' && param === 'model' ? 'model_not_found' : error.code;
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  const message = status === 500 ? 'The server failed. Its log has the details.' : error.message;
  return JSON.stringify({ error: { message, type, param: typeof param === 'string' ? param : null, code } });
}
