/** Reads a CIFF file (https://github.com/osirrc/ciff) and checks its form; independent of the code that writes it. */
export interface Ciff {
  readonly header: {
    readonly version: number;
    readonly lists: number;
    readonly documents: number;
    readonly allLists: number;
    readonly allDocuments: number;
    readonly tokens: number;
    readonly averageLength: number;
    readonly description: string;
  };
  /** In the order of the file. */
  readonly lists: readonly CiffList[];
  readonly documents: readonly { readonly number: number; readonly id: string; readonly length: number }[];
}

export interface CiffList {
  readonly term: string;
  readonly df: number;
  readonly cf: number;
  /** Document numbers and frequencies. */
  readonly postings: readonly (readonly [document: number, tf: number])[];
}

type Fields = Map<number, (number | Uint8Array)[]>;

export function readCiff(bytes: Uint8Array): Ciff {
  const reader = new Reader(bytes);
  const header = reader.message();
  const lists = Array.from({ length: number(header, 2) }, (): CiffList => {
    const list = reader.message();
    let document = 0;
    const postings = (list.get(4) ?? []).map((posting) => {
      const fields = new Reader(posting as Uint8Array).fields();
      document += number(fields, 1);
      return [document, number(fields, 2)] as const;
    });
    return { term: text(list, 1), df: number(list, 2), cf: number(list, 3), postings };
  });
  const documents = Array.from({ length: number(header, 3) }, () => {
    const record = reader.message();
    return { number: number(record, 1), id: text(record, 2), length: number(record, 3) };
  });
  if (!reader.atEnd) throw new Error('bytes follow the last document');
  return {
    header: {
      version: number(header, 1),
      lists: number(header, 2),
      documents: number(header, 3),
      allLists: number(header, 4),
      allDocuments: number(header, 5),
      tokens: number(header, 6),
      averageLength: number(header, 7),
      description: text(header, 8),
    },
    lists,
    documents,
  };
}

function number(fields: Fields, field: number): number {
  return (fields.get(field)?.[0] ?? 0) as number;
}

function text(fields: Fields, field: number): string {
  return Buffer.from((fields.get(field)?.[0] ?? new Uint8Array()) as Uint8Array).toString();
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The next message of a file, behind its length. */
  message(): Fields {
    return new Reader(this.#take(this.#varint())).fields();
  }

  fields(): Fields {
    const fields: Fields = new Map();
    while (!this.atEnd) {
      const tag = this.#varint();
      const values = fields.get(tag >> 3) ?? [];
      fields.set(tag >> 3, values);
      if ((tag & 7) === 0) values.push(this.#varint());
      else if ((tag & 7) === 1) values.push(Buffer.from(this.#take(8)).readDoubleLE());
      else if ((tag & 7) === 2) values.push(this.#take(this.#varint()));
      else throw new Error(`wire type ${tag & 7}`);
    }
    return fields;
  }

  #varint(): number {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#take(1)[0]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  }

  #take(count: number): Uint8Array {
    if (this.#at + count > this.#bytes.length) throw new Error('the bytes end inside a message');
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }
}
