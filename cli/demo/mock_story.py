"""The story with mock brokers: a leader is killed, and no record is lost."""

from cli.demo.story import CREATED, FAIL_OVER, READ_BACK, TOPIC, Result, Story


class MockStory(Story):
    """A cluster of mock brokers loses a leader."""

    steps = ("start the engine and three brokers", f"create topic {TOPIC}: {CREATED}", *FAIL_OVER, READ_BACK)
    opening = "The broker session is 3 s in this demo, instead of Kafka's 9 s. Spark takes 10 to 30 s to start."
    detection = "including the broker session of 3.0 s"

    def tell(self) -> Result:
        self.start()
        self.create_topic()
        writer = self.new_writer()
        try:
            to_new_leader_s, to_first_ack_s = self.fail_over(writer)
        finally:
            writer.stop()
        return Result(to_new_leader_s, to_first_ack_s, writer.median_ack_s, self.read_back(writer))
