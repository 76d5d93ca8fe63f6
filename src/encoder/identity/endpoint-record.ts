import Type from 'typebox';
import { Count } from '../../base/count.ts';

/** The request formats of embedding servers: OpenAI's `/v1/embeddings`, and `/embed` of text-embeddings-inference. */
export const EMBEDDING_APIS = ['openai', 'tei'] as const;
export type EmbeddingApi = (typeof EMBEDDING_APIS)[number];

/** A text with the vector that the endpoint gave it, by which a changed endpoint is recognised. */
const Probe = Type.Object({
  name: Type.String(),
  inputType: Type.Enum(['query', 'passage']),
  /** Without the prefix. */
  text: Type.String(),
  /** Little-endian float32 values in base64; null if the endpoint refuses the text because of its length. */
  vector: Type.Union([Type.String(), Type.Null()]),
  /** Tokens that the endpoint counted, prefix and special tokens included; null if it does not count. */
  tokens: Type.Union([Count, Type.Null()]),
});
export type Probe = Type.Static<typeof Probe>;

/** What an index knows of an encoder behind HTTP. The address is not recorded: an index names no machine. */
export const EndpointRecord = Type.Object({
  api: Type.Enum([...EMBEDDING_APIS]),
  /** The server's program, as far as it says so: `text-embeddings-inference 1.8.0`, `vllm`. */
  software: Type.Union([Type.String(), Type.Null()]),
  /** What the endpoint says about its weights: TEI's `model_sha`, Ollama's digest, SGLang's weight version. */
  revision: Type.Union([Type.String(), Type.Null()]),
  /** Members that are added to the requests, such as `{"prompt_name": "query"}`. */
  requests: Type.Object({
    query: Type.Record(Type.String(), Type.Unknown()),
    passage: Type.Record(Type.String(), Type.Unknown()),
  }),
  /** Separator between question, history and query (surrounded by spaces); null for a single space. */
  separator: Type.Union([Type.String(), Type.Null()]),
  /** What happens to a text that is too long for the model, as the longest probe showed. */
  overlong: Type.Enum(['truncated', 'refused', 'unknown']),
  probes: Type.Array(Probe, { minItems: 1 }),
});
export type EndpointRecord = Type.Static<typeof EndpointRecord>;
