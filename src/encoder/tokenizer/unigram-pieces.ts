import { invalidModel } from '../model/json-file.ts';
import { type ModelPart, unsupported } from './tokenizer-file.ts';

/** By how much an unknown character is less likely than the least likely piece, as a difference of log probabilities. */
const UNKNOWN_PENALTY = 10;

/** Longer pieces would take endless time. Sentencepiece makes none. */
const LONGEST_PIECE = 512;

/**
 * Splits a word into pieces: its most likely segmentation (Viterbi), with the reference's rules. Of equally likely segmentations, the one
 * whose last piece begins first wins; adjacent unknown characters form one unknown piece.
 */
export function unigramEncoder(part: ModelPart): (word: string) => number[] {
  const { unk_id: unknownId } = part;
  const vocab = Array.isArray(part.vocab) ? (part.vocab as readonly (readonly [string, number])[]) : [];
  if (part.byte_fallback === true) throw unsupported('model', part, ' with byte_fallback');
  if (unknownId == null || vocab[unknownId] === undefined) {
    throw invalidModel(`its unk_id ${JSON.stringify(unknownId)} is not in its vocabulary`);
  }
  const long = vocab.find(([piece]) => piece.length > LONGEST_PIECE);
  if (long !== undefined) throw unsupported('model', part, ` with a piece of ${long[0].length} characters`);
  const pieces = new PieceTrie(vocab.map(([piece]) => piece));
  const scores = Float64Array.from(vocab, ([, score]) => asReferenceReads(score));
  let unknownScore = Number.POSITIVE_INFINITY;
  for (const score of scores) unknownScore = Math.min(unknownScore, score);
  unknownScore -= UNKNOWN_PENALTY;

  return (word) => {
    const size = word.length;
    const best = new Float64Array(size + 1);
    const from = new Int32Array(size + 1).fill(-1);
    const ids = new Int32Array(size + 1);
    const offer = (end: number, start: number, id: number, score: number) => {
      if (from[end] !== -1 && score <= best[end]!) return;
      best[end] = score;
      from[end] = start;
      ids[end] = id;
    };
    for (let start = 0; start < size; ) {
      const next = start + (word.codePointAt(start)! > 0xffff ? 2 : 1);
      let single = false;
      pieces.forEachPrefix(word, start, (end, id) => {
        offer(end, start, id, best[start]! + scores[id]!);
        single ||= end === next;
      });
      if (!single) offer(next, start, unknownId, best[start]! + unknownScore);
      start = next;
    }
    const result: number[] = [];
    for (let end = size; end > 0; end = from[end]!) {
      const id = ids[end]!;
      if (id !== unknownId || result.at(-1) !== unknownId) result.push(id);
    }
    return result.reverse();
  };
}

/** The reference rounds the digits of a score before it divides them by a power of ten, which decides between equally likely segmentations. */
function asReferenceReads(score: number): number {
  const [whole, fraction = ''] = String(score).split('.');
  return fraction.includes('e') ? score : Number(whole + fraction) / Number(`1e${fraction.length}`);
}

/** A set of strings that finds all members that start at a position of a text. A trie in one hash table: (node, code unit) → node. */
class PieceTrie {
  /** Per slot: the edge's parent node, its code unit and its child node. Child 0, the root, marks an empty slot. */
  #parents = new Int32Array(1 << 16);
  #units = new Uint16Array(1 << 16);
  #children = new Int32Array(1 << 16);
  #nodes = 1;
  /** Per node: the piece that ends there, or −1. */
  readonly #pieceAt: Int32Array;

  constructor(pieces: readonly string[]) {
    const ends = pieces.map((piece) => {
      let node = 0;
      for (let i = 0; i < piece.length; i++) node = this.#childOf(node, piece.charCodeAt(i));
      return node;
    });
    this.#pieceAt = new Int32Array(this.#nodes).fill(-1);
    // The last id of a duplicate piece is used.
    for (const [id, node] of ends.entries()) if (node > 0) this.#pieceAt[node] = id;
  }

  /** Visits the members that start at `start`, the shortest first. */
  forEachPrefix(text: string, start: number, visit: (end: number, id: number) => void): void {
    let node = 0;
    for (let at = start; at < text.length; at++) {
      node = this.#children[this.#slotOf(node, text.charCodeAt(at))]!;
      if (node === 0) return;
      const id = this.#pieceAt[node]!;
      if (id !== -1) visit(at + 1, id);
    }
  }

  #childOf(parent: number, unit: number): number {
    const slot = this.#slotOf(parent, unit);
    if (this.#children[slot] !== 0) return this.#children[slot]!;
    const child = this.#nodes++;
    this.#put(slot, parent, unit, child);
    // Keeps the table at most half full, because look-ups in a fuller table are slow.
    if (child * 2 > this.#children.length) this.#grow();
    return child;
  }

  #put(slot: number, parent: number, unit: number, child: number): void {
    this.#parents[slot] = parent;
    this.#units[slot] = unit;
    this.#children[slot] = child;
  }

  /** The slot of the edge, or the empty slot to put it in. */
  #slotOf(parent: number, unit: number): number {
    const mask = this.#children.length - 1;
    let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
    let slot = (hash ^ (hash >>> 16)) & mask;
    while (this.#children[slot] !== 0 && (this.#parents[slot] !== parent || this.#units[slot] !== unit)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [parents, units, children] = [this.#parents, this.#units, this.#children];
    this.#parents = new Int32Array(parents.length * 4);
    this.#units = new Uint16Array(units.length * 4);
    this.#children = new Int32Array(children.length * 4);
    for (let i = 0; i < children.length; i++) {
      if (children[i] !== 0) this.#put(this.#slotOf(parents[i]!, units[i]!), parents[i]!, units[i]!, children[i]!);
    }
  }
}
