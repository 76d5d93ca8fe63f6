import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { nodeMessage, tensorHead, valueMessage } from '../../src/encoder/model/onnx-messages.ts';
import { ProtobufWriter } from '../../src/encoder/model/protobuf-writer.ts';
import { bytesOfTensor, MICROSOFT, type OnnxGraph, type OnnxTensor } from './onnx-graph.ts';

/** Operator set 17 belongs to IR version 8 and has every operator that the graphs use. */
const IR_VERSION = 8;
const OPERATOR_SET = 17;

/** If the tensors have more bytes in total, they go to a data file, which can be mapped and has no 2 GiB limit. */
const EMBEDDED_BYTES = 32 * 1024 * 1024;
/** A smaller tensor is always in the graph file. */
const SMALL_BYTES = 1024;
/** Tensors in the data file begin at page boundaries, so that each can be mapped. */
const ALIGNMENT = 4096;

export interface WriteOnnxOptions {
  readonly signal?: AbortSignal;
  /** Called with the tensor bytes written since the last call. */
  readonly onBytes?: (bytes: number) => void;
}

/**
 * Writes a graph to `path`, and large tensors to `<path>.data`. Returns the paths of the files written. Neither file may
 * exist. Keeps the embedded tensors and one piece of a tensor in memory.
 */
export async function writeOnnx(path: string, graph: OnnxGraph, options: WriteOnnxOptions = {}): Promise<string[]> {
  const total = graph.tensors.reduce((sum, tensor) => sum + bytesOfTensor(tensor), 0);
  const dataPath = `${path}.data`;
  const isExternal = (tensor: OnnxTensor) => total > EMBEDDED_BYTES && bytesOfTensor(tensor) >= SMALL_BYTES;
  const data = graph.tensors.some(isExternal) ? new AlignedFile(await open(dataPath, 'wx')) : null;
  const tensors: ProtobufWriter[] = [];
  try {
    for (const tensor of graph.tensors) {
      const message = tensorHead(tensor);
      if (data !== null && isExternal(tensor)) {
        const offset = await data.append(piecesOf(tensor, options));
        const place = { location: basename(dataPath), offset: String(offset), length: String(bytesOfTensor(tensor)) };
        for (const [key, value] of Object.entries(place)) {
          message.message(13, new ProtobufWriter().string(1, key).string(2, value));
        }
        message.integer(14, 1);
      } else {
        const pieces: Uint8Array[] = [];
        for await (const piece of piecesOf(tensor, options)) pieces.push(piece);
        message.bytes(9, Buffer.concat(pieces));
      }
      tensors.push(message);
    }
    await data?.sync();
  } finally {
    await data?.close();
  }
  await writeParts(path, modelMessage(graph, tensors).parts);
  return data === null ? [path] : [path, dataPath];
}

/** The tensor's bytes. Throws if their number does not match its shape. */
async function* piecesOf(tensor: OnnxTensor, { signal, onBytes }: WriteOnnxOptions): AsyncGenerator<Uint8Array> {
  let written = 0;
  for await (const piece of tensor.bytes()) {
    throwIfCancelled(signal);
    written += piece.length;
    yield piece;
    onBytes?.(piece.length);
  }
  if (written !== bytesOfTensor(tensor)) {
    throw bug(`${tensor.name} yielded ${written} bytes; its shape has ${bytesOfTensor(tensor)}`);
  }
}

class AlignedFile {
  readonly #file: FileHandle;
  #length = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Appends pieces at the next page boundary. Returns the offset of the first. */
  async append(pieces: AsyncIterable<Uint8Array>): Promise<number> {
    const start = Math.ceil(this.#length / ALIGNMENT) * ALIGNMENT;
    this.#length = start;
    for await (const piece of pieces) {
      // Writing past the end fills the gap with zeros.
      await writeFully(this.#file, piece, this.#length);
      this.#length += piece.length;
    }
    return start;
  }

  async sync(): Promise<void> {
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const wanted = Math.min(bytes.length - done, 2 ** 30);
    done += (await file.write(bytes, done, wanted, position + done)).bytesWritten;
  }
}

async function writeParts(path: string, parts: readonly Uint8Array[]): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(Buffer.concat(parts));
    await file.sync();
  } finally {
    await file.close();
  }
}

// The field numbers below come from onnx.proto.

function modelMessage(graph: OnnxGraph, tensors: readonly ProtobufWriter[]): ProtobufWriter {
  const model = new ProtobufWriter()
    .integer(1, IR_VERSION)
    .string(2, 'trawl')
    .string(3, packageVersion)
    .message(7, graphMessage(graph, tensors))
    .message(8, new ProtobufWriter().string(1, '').integer(2, OPERATOR_SET));
  if (graph.nodes.some((node) => node.domain === MICROSOFT)) {
    model.message(8, new ProtobufWriter().string(1, MICROSOFT).integer(2, 1));
  }
  return model;
}

function graphMessage(graph: OnnxGraph, tensors: readonly ProtobufWriter[]): ProtobufWriter {
  const message = new ProtobufWriter();
  for (const node of graph.nodes) message.message(1, nodeMessage(node));
  message.string(2, graph.name);
  for (const tensor of tensors) message.message(5, tensor);
  for (const input of graph.inputs) message.message(11, valueMessage(input));
  for (const output of graph.outputs) message.message(12, valueMessage(output));
  return message;
}
