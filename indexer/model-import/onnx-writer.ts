import { open, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { bug } from '../../src/base/errors.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { nodeMessage, ProtobufWriter, tensorHead, valueMessage } from '../../src/encoder/model/onnx-messages.ts';
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
  const data = graph.tensors.some(isExternal) ? await open(dataPath, 'wx') : undefined;
  let dataBytes = 0;
  const tensors: ProtobufWriter[] = [];
  try {
    for (const tensor of graph.tensors) {
      const message = tensorHead(tensor);
      if (data !== undefined && isExternal(tensor)) {
        const offset = Math.ceil(dataBytes / ALIGNMENT) * ALIGNMENT;
        await data.writeFile(new Uint8Array(offset - dataBytes));
        for await (const piece of checkedPieces(tensor, options)) await data.writeFile(piece);
        dataBytes = offset + bytesOfTensor(tensor);
        const place = { location: basename(dataPath), offset: String(offset), length: String(dataBytes - offset) };
        for (const [key, value] of Object.entries(place)) {
          message.message(13, new ProtobufWriter().string(1, key).string(2, value));
        }
        message.integer(14, 1);
      } else {
        const pieces: Uint8Array[] = [];
        for await (const piece of checkedPieces(tensor, options)) pieces.push(piece);
        message.bytes(9, Buffer.concat(pieces));
      }
      tensors.push(message);
    }
    await data?.sync();
  } finally {
    await data?.close();
  }
  await writeFile(path, Buffer.concat(modelMessage(graph, tensors).parts), { flag: 'wx', flush: true });
  return data === undefined ? [path] : [path, dataPath];
}

/** The tensor's bytes. Throws if their number does not match its shape. */
async function* checkedPieces(tensor: OnnxTensor, { signal, onBytes }: WriteOnnxOptions): AsyncGenerator<Uint8Array> {
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
