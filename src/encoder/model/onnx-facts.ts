import { type FileHandle, open } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import type { Precision } from '../identity/model-identity.ts';
import { type ProtobufField, ProtobufFile } from './protobuf-file.ts';

/** Facts about an ONNX graph, read from its file without loading the weights. */
export interface OnnxFacts {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly precision: Precision;
  /** Files with the graph's weights, as the graph names them. */
  readonly externalData: readonly string[];
}

/** Operators on quantised numbers. */
const QUANTIZED_OPERATORS =
  /^(MatMulInteger|ConvInteger|Q(Linear|Attention|Gemm|Embed|Ordered)|DynamicQuantize|QuantizeLinear|DequantizeLinear|MatMulNBits)/;

/** Field numbers and data types of onnx.proto. */
const MODEL = { graph: 7 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 };
const NODE = { operator: 4 };
const TENSOR = { dims: 1, dataType: 2, externalData: 13 };
const VALUE = { name: 1 };
const ENTRY = { key: 1, value: 2 };
const DATA = { float32: 1, uint8: 2, int8: 3, float16: 10, bfloat16: 16 };

/** @throws TrawlError MODEL_INVALID if the file cannot be read or is not an ONNX graph. */
export async function readOnnxFacts(path: string): Promise<OnnxFacts> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const { size } = await file.stat();
    const graph = new GraphWalk(new ProtobufFile(file, size));
    await graph.walk();
    if (graph.outputs.length === 0) throw new RangeError('it has no graph');
    const { inputs, outputs, precision, externalData } = graph;
    return { inputs, outputs, precision, externalData: [...externalData] };
  } catch (cause) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} is not an ONNX file, or is damaged: ${(cause as Error).message}. Fetch or export it again.`,
      { cause },
    );
  } finally {
    await file?.close();
  }
}

class GraphWalk {
  readonly inputs: string[] = [];
  readonly outputs: string[] = [];
  readonly externalData = new Set<string>();
  readonly #file: ProtobufFile;
  /** Number of weights by data type. */
  readonly #weights = new Map<number, number>();
  #quantized = false;

  constructor(file: ProtobufFile) {
    this.#file = file;
  }

  async walk(): Promise<void> {
    for await (const field of this.#file.fields()) {
      if (field.number === MODEL.graph) await this.#walkGraph(field);
    }
  }

  /** The type of most weights. A graph with quantised operators is int8, because these may pack their weights. */
  get precision(): Precision {
    const of = (...types: number[]) => types.reduce((sum, type) => sum + (this.#weights.get(type) ?? 0), 0);
    const [whole, half, bytes] = [of(DATA.float32), of(DATA.float16, DATA.bfloat16), of(DATA.int8, DATA.uint8)];
    if (this.#quantized || bytes > whole + half) return 'int8';
    return half > whole ? 'float16' : 'float32';
  }

  async #walkGraph({ start, end }: ProtobufField): Promise<void> {
    for await (const field of this.#file.fields(start, end)) {
      if (field.number === GRAPH.node) {
        this.#quantized ||= QUANTIZED_OPERATORS.test(await this.#file.text(field, NODE.operator));
      } else if (field.number === GRAPH.initializer) await this.#walkTensor(field);
      else if (field.number === GRAPH.input) this.inputs.push(await this.#file.text(field, VALUE.name));
      else if (field.number === GRAPH.output) this.outputs.push(await this.#file.text(field, VALUE.name));
    }
  }

  async #walkTensor({ start, end }: ProtobufField): Promise<void> {
    let elements = 1;
    let type = 0;
    for await (const field of this.#file.fields(start, end)) {
      if (field.number === TENSOR.dims) {
        for (const dimension of await this.#file.numbers(field)) elements *= dimension;
      } else if (field.number === TENSOR.dataType) type = field.value;
      else if (field.number === TENSOR.externalData && (await this.#file.text(field, ENTRY.key)) === 'location') {
        this.externalData.add(await this.#file.text(field, ENTRY.value));
      }
    }
    this.#weights.set(type, (this.#weights.get(type) ?? 0) + elements);
  }
}
