/** An instruction set that the engine was compiled for. */
export interface InstructionSet {
  readonly name: string;
  readonly available: boolean;
  /** The machine's features that make it available, or the missing ones. */
  readonly reason: string;
}
