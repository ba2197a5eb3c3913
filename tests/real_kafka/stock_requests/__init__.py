"""The requests that a controller of brokers in ZooKeeper mode sends, in stories: a stock controller's and ours."""
