/** The question that a query helps to answer, as its client names it beside the text that is searched for. Never used to search. */
export interface AskedQuestion {
  readonly questionId?: string;
  /** The data set of the id. */
  readonly dataset?: string;
  readonly question?: string;
}
